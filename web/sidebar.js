// The list of conversations: open, rename, save as a file, delete.

import {$, download, el, iconButton} from "./dom.js";
import {t} from "./i18n.js";
import {asMarkdown, listConversations, loadConversation, saveConversation} from "./store.js";

function fileName(title) {
  return `${title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 40) || "chat"}.md`;
}

export class Sidebar {
  // hooks: {onOpen(conversation), onRemove(conversation), onRenamed(conversation), current() -> conversation}
  constructor(hooks) {
    this.hooks = hooks;
  }

  show() {
    const current = this.hooks.current();
    $("conversations").replaceChildren(...listConversations().map((c) => this.row(c, c.id === current.id)));
  }

  row(conversation, isCurrent) {
    const title = conversation.title || t("untitled");
    const open = el("button", {
      type: "button", class: "open", title, "aria-current": isCurrent ? "true" : null,
      onclick: () => this.hooks.onOpen(loadConversation(conversation.id) ?? conversation),
      ondblclick: () => this.rename(conversation, row),
      onkeydown: (event) => event.key === "F2" && this.rename(conversation, row),
    }, title);
    const tools = el("div", {class: "tools", role: "group", "aria-label": t("more", {title})},
      iconButton("edit", t("rename"), () => this.rename(conversation, row)),
      iconButton("save", t("export"), () => download(fileName(title), "text/markdown", asMarkdown(loadConversation(conversation.id) ?? conversation))),
      iconButton("trash", t("remove"), () => this.hooks.onRemove(loadConversation(conversation.id) ?? conversation)));
    const row = el("li", {class: isCurrent ? "current" : ""}, open, tools);
    return row;
  }

  rename(conversation, row) {
    const input = el("input", {type: "text", value: conversation.title, maxlength: "120", "aria-label": t("rename")});
    let done = false;
    const end = (keep) => {
      if (done) return;
      done = true;
      const title = input.value.trim();
      if (keep && title && title !== conversation.title) {
        const fresh = loadConversation(conversation.id) ?? conversation;
        fresh.title = title;
        saveConversation(fresh);
        this.hooks.onRenamed(fresh);
      }
      this.show();
    };
    input.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter" && !event.isComposing) end(true);
      if (event.key === "Escape") end(false);
    });
    input.addEventListener("blur", () => end(true));
    row.replaceChildren(input);
    input.select();
  }
}
