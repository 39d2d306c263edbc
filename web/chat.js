// The chat: the conversation on the screen, the answers that are on their way, and what the user does with them.
// An answer goes on when another conversation is opened, and is there when one comes back.

import {explain, ServerError, streamChat} from "./api.js";
import {$} from "./dom.js";
import {t} from "./i18n.js";
import {MessageView} from "./message_view.js";
import {newConversation, removeConversation, saveConversation, setPreference, titleOf} from "./store.js";

const kSaveEvery = 2000;  // ms, while an answer streams
const kNearEnd = 48;      // pixels from the end that count as the end

// What the server is asked for: what was said, without the thinking before it. `going on` continues the last answer
// instead of beginning one.
function requestBody(conversation, model, goingOn) {
  const messages = conversation.messages.filter((m) => m.content !== "").map(({role, content}) => ({role, content}));
  if (conversation.system.trim()) messages.unshift({role: "system", content: conversation.system});
  const body = {model, messages, ...conversation.sampling};
  return goingOn ? {...body, add_generation_prompt: false, continue_final_message: true} : body;
}

// One answer on its way.
class Job {
  constructor(message) {
    this.message = message;
    this.abort = new AbortController();
    this.before = message.content;
    this.begin();
  }
  begin() {
    this.started = performance.now();
    this.pieces = 0;
    this.thinks = false;  // the last piece was thinking
    this.first = this.last = 0;
  }
  take(piece, isThinking) {
    const {message} = this;
    this.last = performance.now();
    if (this.pieces++ === 0) this.first = this.last;
    if (isThinking) message.reasoning = (message.reasoning ?? "") + piece;
    else message.content += piece;
    if (isThinking || this.thinks) message.thought = (this.last - this.first) / 1000;
    this.thinks = isThinking;
  }
  stats(usage) {
    if (this.pieces === 0) return null;
    const tokens = usage?.completion_tokens ?? this.pieces;
    const seconds = (this.last - this.first) / 1000;
    return {
      tokens,
      exact: Boolean(usage),
      rate: tokens > 2 && seconds > 0 ? (tokens - 1) / seconds : 0,
      ttft: (this.first - this.started) / 1000,
      prompt: usage?.prompt_tokens ?? 0,
      cached: usage?.prompt_tokens_details?.cached_tokens ?? 0,
    };
  }
}

export class Chat {
  // hooks: {onList(), toast(text, undo), askForKey() -> Promise<bool>, model() -> string, onOpen(conversation)}
  constructor(hooks) {
    this.hooks = hooks;
    this.jobs = new Map();  // conversation id -> Job
    this.views = [];        // of the messages of this.conversation
    this.following = true;  // the end stays in view while an answer grows
    this.frame = 0;
    this.scroller = $("scroller");
    this.scroller.addEventListener("scroll", () => this.scrolled(), {passive: true});
    $("to-end").addEventListener("click", () => this.toEnd());
    this.conversation = newConversation();
  }

  get job() { return this.jobs.get(this.conversation.id); }

  open(conversation) {
    // One that is being answered lives here, newer than in the store.
    this.conversation = [...this.jobs.values()].find((job) => job.conversation.id === conversation.id)?.conversation ?? conversation;
    this.rebuild();
    this.toEnd();
    setPreference("open", this.conversation.id);
    this.hooks.onOpen(this.conversation);
  }

  startNew() {
    this.open(newConversation());
  }

  rebuild() {
    const actions = {
      onAgain: (message) => this.again(message),
      onGoOn: (message) => this.answer(message),
      onEdit: (message, text) => this.edit(message, text),
    };
    const {messages} = this.conversation;
    this.views = messages.map((message) => new MessageView(message, actions));
    this.views.forEach((view, i) => view.show({live: this.job?.message === view.message, last: i + 1 === messages.length}));
    $("messages").replaceChildren(...this.views.map((view) => view.node));
    $("welcome").hidden = messages.length > 0;
    this.showButtons();
  }

  showButtons() {
    const busy = Boolean(this.job);
    $("stop").hidden = !busy;
    $("send").hidden = busy;
  }

  // Updates the answer that grows, once a frame.
  schedule() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const view = this.job && this.views.at(-1);
      if (view?.message !== this.job?.message || !view) return;
      view.show({live: true, last: true});
      if (this.following) this.scroller.scrollTop = this.scroller.scrollHeight;
      else this.scrolled();
    });
  }

  scrolled() {
    const {scrollHeight, scrollTop, clientHeight} = this.scroller;
    this.following = scrollHeight - scrollTop - clientHeight < kNearEnd;
    $("to-end").hidden = this.following;
  }

  toEnd() {
    this.following = true;
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.scrolled();
  }

  save(conversation) {
    conversation.updated = Date.now();
    if (!saveConversation(conversation)) this.hooks.toast(t("full"));
    this.hooks.onList();
  }

  send(text) {
    if (this.job || !text.trim()) return false;
    const {conversation} = this;
    if (!conversation.title) conversation.title = titleOf(text);
    conversation.messages.push({role: "user", content: text.trim()});
    this.answer();
    return true;
  }

  stop() {
    this.job?.abort.abort();
  }

  // Takes away what follows `keep` messages, with a way back, and answers anew.
  replaceAfter(keep, change) {
    const {conversation} = this;
    this.stop();
    const before = structuredClone(conversation.messages);
    conversation.messages.length = keep;
    change?.();
    this.answer();
    if (before.slice(keep).some((message) => message.content)) {
      this.hooks.toast(t("replaced"), () => {
        this.jobs.get(conversation.id)?.abort.abort();
        this.jobs.delete(conversation.id);
        conversation.messages = before;
        this.save(conversation);
        if (this.conversation.id === conversation.id) this.rebuild();
      });
    }
  }

  again(message) {
    this.replaceAfter(this.conversation.messages.indexOf(message));
  }

  edit(message, text) {
    const at = this.conversation.messages.indexOf(message);
    this.replaceAfter(at, () => this.conversation.messages.push({role: "user", content: text}));
  }

  // Answers the last message; with `goOn`, the last answer itself is continued.
  async answer(goOn = null) {
    const {conversation} = this;
    const message = goOn ?? {role: "assistant", content: ""};
    delete message.error;
    delete message.reason;
    if (!goOn) conversation.messages.push(message);
    const job = new Job(message);
    job.conversation = conversation;
    this.jobs.set(conversation.id, job);
    this.save(conversation);
    this.rebuild();
    this.toEnd();
    $("announcer").textContent = t("answering");
    await this.run(job, Boolean(goOn));
    if (this.jobs.get(conversation.id) !== job) return;  // undone, or replaced by another
    this.jobs.delete(conversation.id);
    this.save(conversation);
    if (this.conversation !== conversation) return;
    this.views.at(-1).show({live: false, last: true});
    this.showButtons();
    if (this.following) this.toEnd();
    $("announcer").textContent = message.error ? "" : t("answered", {text: message.content.slice(0, 4000)});
  }

  async run(job, goingOn) {
    const {message, conversation} = job;
    const saving = setInterval(() => saveConversation(conversation), kSaveEvery);
    const onText = (piece, isThinking) => {
      job.take(piece, isThinking);
      if (this.conversation === conversation) this.schedule();
    };
    try {
      const body = requestBody(conversation, this.hooks.model(), goingOn);
      const {reason, usage} = await this.withKey(job, () => streamChat(body, job.abort.signal, onText));
      message.reason = reason ?? "stop";
      message.stats = job.stats(usage);
    } catch (error) {
      message.stats = job.stats(null);
      if (error.name === "AbortError") message.reason = "stopped";
      // The network failed on the way, or the page is being left.
      else if (error instanceof TypeError && job.pieces) message.reason = "interrupted";
      else message.error = explain(error);
    } finally {
      clearInterval(saving);
    }
  }

  // Asks for a key as often as the server wants one and the user has one.
  async withKey(job, attempt) {
    for (;;) {
      try {
        return await attempt();
      } catch (error) {
        if (!(error instanceof ServerError) || error.status !== 401 || !(await this.hooks.askForKey())) throw error;
        job.begin();
      }
    }
  }

  // Deletes a conversation; its toast brings it back.
  remove(conversation) {
    this.jobs.get(conversation.id)?.abort.abort();
    this.jobs.delete(conversation.id);
    removeConversation(conversation.id);
    if (this.conversation.id === conversation.id) this.open(newConversation());
    this.hooks.onList();
    this.hooks.toast(t("removed"), () => {
      saveConversation(conversation);
      this.open(conversation);
      this.hooks.onList();
    });
  }

  // Another tab changed it.
  reload(conversation) {
    if (this.job || conversation?.id !== this.conversation.id) return;
    this.conversation = conversation;
    this.rebuild();
  }

  setSystem(text) {
    this.conversation.system = text;
    setPreference("system", text);
    this.keep();
  }

  setSampling(sampling) {
    this.conversation.sampling = sampling;
    setPreference("sampling", sampling);
    this.keep();
  }

  // A conversation without messages is not worth an entry.
  keep() {
    for (const conversation of [this.conversation, ...[...this.jobs.values()].map((job) => job.conversation)]) {
      if (conversation.messages.length) saveConversation(conversation);
    }
  }
}
