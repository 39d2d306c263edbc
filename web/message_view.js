// One message on the screen: its text, what can be done with it, and how fast it was.

import {copyText, el, iconButton} from "./dom.js";
import {formatCount, formatRate, formatSeconds, t} from "./i18n.js";
import {MarkdownView} from "./markdown.js";

function statsLine(stats) {
  const parts = [];
  if (stats.tokens) parts.push(t(stats.tokens === 1 ? "token" : "tokens", {n: (stats.exact ? "" : "≈ ") + formatCount(stats.tokens)}));
  if (stats.rate) parts.push(t("perSecond", {n: formatRate(stats.rate)}));
  if (stats.ttft) parts.push(t("firstAfter", {time: formatSeconds(stats.ttft)}));
  if (stats.cached) parts.push(t("cached", {n: formatCount(stats.cached), of: formatCount(stats.prompt)}));
  return el("p", {class: "stats", "aria-label": t("statsLabel")}, parts.join(" · "));
}

function trouble(message) {
  if (message.error) return message.error;
  if (message.reason === "stopped") return t("stopped");
  if (message.reason === "length") return t("cutOff");
  return message.reason === "stop" ? "" : t("interrupted");
}

// The thinking before an answer, folded until it is opened.
class ThoughtView {
  constructor() {
    this.title = el("summary");
    this.text = el("div", {class: "thought-text", dir: "auto"});
    this.node = el("details", {class: "thought", hidden: true, ontoggle: () => this.fill()}, this.title, this.text);
    this.message = null;
  }

  show(message, live) {
    this.message = message;
    this.node.hidden = !message.reasoning;
    if (this.node.hidden) return;
    const thinks = live && message.content === "";
    this.node.classList.toggle("going", thinks);
    const seconds = message.thought ?? 0;
    this.title.textContent = thinks || !seconds ? t(thinks ? "thinking" : "thoughts") : t("thought", {time: formatSeconds(seconds)});
    this.fill();
  }

  fill() {
    if (this.node.open && this.message) this.text.textContent = this.message.reasoning;
  }
}

export class MessageView {
  // actions: {onAgain(message), onGoOn(message), onEdit(message, text)}
  constructor(message, actions) {
    this.message = message;
    this.actions = actions;
    this.isUser = message.role === "user";
    this.body = el("div", {class: this.isUser ? "body" : "body markdown", dir: "auto"});
    this.foot = el("div", {class: "foot"});
    const name = el("h2", {class: "unseen"}, t(this.isUser ? "you" : "answer"));
    this.node = el("article", {class: `message ${message.role}`}, name, this.body, this.foot);
    if (this.isUser) return;
    this.markdown = new MarkdownView(this.body);
    this.thought = new ThoughtView();
    this.body.before(this.thought.node);
  }

  // live: the answer is still coming; last: no message follows.
  show({live, last}) {
    const {message} = this;
    this.node.classList.toggle("live", live);
    this.node.setAttribute("aria-busy", String(live));
    if (this.isUser) this.body.textContent = message.content;
    else this.markdown.update(message.content, !live);
    this.thought?.show(message, live);
    this.node.classList.toggle("waiting", live && message.content === "" && !message.reasoning);
    if (live) {
      this.foot.replaceChildren();
      return;
    }
    this.foot.replaceChildren(...this.footer(last));
  }

  footer(last) {
    const {message, actions} = this;
    const parts = [];
    const why = this.isUser ? "" : trouble(message);
    if (!this.isUser && message.reason === "stop" && message.content === "") parts.push(el("p", {class: "why"}, t("empty")));
    if (why) {
      const note = el("p", {class: message.error ? "why bad" : "why", role: message.error ? "alert" : null}, why);
      if (last && message.error) note.append(this.wordButton("tryAgain", () => actions.onAgain(message)));
      else if (last && message.content && message.reason !== "stop") note.append(this.wordButton("goOn", () => actions.onGoOn(message)));
      parts.push(note);
    }
    const buttons = el("div", {class: "actions"});
    if (message.content) {
      const copy = iconButton("copy", t("copy"), () => copyText(message.content, copy, t("copy"), t("copied")));
      buttons.append(copy);
    }
    if (this.isUser) buttons.append(iconButton("edit", t("edit"), () => this.edit()));
    else buttons.append(iconButton("again", t("regenerate"), () => actions.onAgain(message)));
    if (message.stats) buttons.append(statsLine(message.stats));
    parts.push(buttons);
    return parts;
  }

  wordButton(key, onclick) {
    return el("button", {type: "button", class: "word", onclick}, t(key));
  }

  edit() {
    const area = el("textarea", {class: "editor", "aria-label": t("edit"), rows: "3"});
    area.value = this.message.content;
    const fit = () => {
      area.style.height = "auto";
      area.style.height = `${area.scrollHeight + 2}px`;
    };
    const cancel = () => {
      this.node.classList.remove("editing");
      this.show({live: false, last: false});
      this.foot.querySelector("button:last-of-type")?.focus();
    };
    const save = () => {
      const text = area.value.trim();
      if (text) this.actions.onEdit(this.message, text);
    };
    area.addEventListener("input", fit);
    area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        save();
      } else if (event.key === "Escape") {
        event.stopPropagation();
        cancel();
      }
    });
    this.node.classList.add("editing");
    this.body.replaceChildren(area);
    this.foot.replaceChildren(el("div", {class: "buttons"},
      el("button", {type: "button", onclick: cancel}, t("cancel")),
      el("button", {type: "button", class: "main", onclick: save}, t("save"))));
    fit();
    area.focus();
  }
}
