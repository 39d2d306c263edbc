// Puts the page together: views, colours, language, keys, and what connects the parts.

import {explain, getJson, hasKey, setKey} from "./api.js";
import {Chat} from "./chat.js";
import {Dashboard} from "./dashboard.js";
import {$, el, icon} from "./dom.js";
import {Feed} from "./feed.js";
import {formatCount, formatRate, setLanguage, t} from "./i18n.js";
import {Settings} from "./settings.js";
import {Sidebar} from "./sidebar.js";
import {loadConversation, preferences, setPreference, watchConversations} from "./store.js";

const kRetry = 2000;       // ms, while the server does not say which model it serves
const kToastTime = 8000;   // ms
const kSuggestions = 4;
const narrow = matchMedia("(max-width: 820px)");
const models = [];         // {id, max_model_len}

let toastTimer = 0;
let asking = null;  // the dialog that is open, as a promise

function toast(text, undo) {
  clearTimeout(toastTimer);
  const hide = () => { $("toast").hidden = true; };
  const again = undo && el("button", {type: "button", class: "word", onclick: () => { hide(); undo(); }}, t("undo"));
  $("toast").replaceChildren(text, ...(again ? [again] : []));
  $("toast").hidden = false;
  toastTimer = setTimeout(hide, kToastTime);
}

function notice(text) {
  $("notice").hidden = !text;
  if (text && $("notice").textContent !== text) $("notice").textContent = text;
}

// True once there is a key to try. Several that ask at once share a dialog.
function askForKey() {
  asking ??= new Promise((resolve) => {
    const dialog = $("key-dialog");
    $("key-text").textContent = t(hasKey() ? "keyWrong" : "keyText");
    $("key").value = "";
    let given = false;
    const accept = () => {
      if (!$("key").value.trim()) return;
      setKey($("key").value.trim());
      given = true;
      dialog.close();
    };
    $("key-ok").onclick = accept;
    $("key-cancel").onclick = () => dialog.close();
    $("key").onkeydown = (event) => event.key === "Enter" && accept();
    dialog.onclose = () => {
      asking = null;
      $("key").value = "";
      if (given) resume();
      resolve(given);
    };
    dialog.showModal();
  });
  return asking;
}

// What was given up for want of a key.
function resume() {
  feed.off = false;
  if (!models.length) findModels();
}

const chosenModel = () => models.find(({id}) => id === preferences().model) ?? models[0];

const feed = new Feed({onSample: showPulse, onTrouble: showTrouble, askForKey});
const settings = new Settings({
  onChange: (sampling) => chat.setSampling(sampling),
  onSystem: (text) => chat.setSystem(text),
});
const sidebar = new Sidebar({
  current: () => chat.conversation,
  onOpen: (conversation) => { show(conversation); closeDrawers(); },
  onRemove: (conversation) => chat.remove(conversation),
  onRenamed: (conversation) => {
    if (conversation.id === chat.conversation.id) chat.conversation.title = conversation.title;
    showTitle();
  },
});
const chat = new Chat({
  toast, askForKey,
  model: () => chosenModel()?.id ?? "",
  onList: () => { sidebar.show(); showTitle(); },
  onOpen: (conversation) => { settings.show(conversation); sidebar.show(); showTitle(); },
});
const dashboard = new Dashboard(feed);

function show(conversation) {
  chat.open(conversation);
  location.hash = "#chat";
  if (!narrow.matches) $("prompt").focus();
}

function showTitle() {
  const onDashboard = !$("dashboard").hidden;
  $("title").textContent = onDashboard ? t("dashboard") : chat.conversation.title || t("untitled");
  document.title = onDashboard ? `${t("dashboard")} · Whippet` : chat.conversation.title || "Whippet";
}

function showView() {
  const onDashboard = location.hash === "#dashboard";
  $("dashboard").hidden = !onDashboard;
  $("chat").hidden = onDashboard;
  $("open-settings").hidden = onDashboard;
  if (onDashboard) toggleSettings(false);
  $("link-chat").toggleAttribute("aria-current", !onDashboard);
  $("link-dashboard").toggleAttribute("aria-current", onDashboard);
  closeDrawers();
  showTitle();
  showPulse();
  if (!onDashboard) chat.toEnd();
}

function showPulse() {
  const latest = feed.latest;
  const busy = latest && (latest.generated > 0 || latest.running > 0);
  $("pulse").hidden = !busy || !$("dashboard").hidden;
  if (busy) $("pulse").textContent = t("perSecond", {n: formatRate(latest.generated)});
  dashboard.draw();
}

function showTrouble(text, error) {
  notice(text && (error?.status ? text : t("retrying")));
}

function showModel() {
  const model = chosenModel();
  if (!model) return;
  $("welcome-model").textContent = t("welcomeModel", {model: model.id, length: formatCount(model.max_model_len ?? 0)});
  if (!model.max_model_len) $("welcome-model").textContent = model.id;
  $("model-field").hidden = models.length < 2;
  $("model").replaceChildren(...models.map(({id}) => el("option", {value: id, selected: id === model.id}, id)));
  settings.limit(model.max_model_len ?? 2048);
}

// Until the server says what it serves.
async function findModels() {
  try {
    const {data} = await getJson("v1/models");
    models.splice(0, models.length, ...data);
    showModel();
  } catch (error) {
    if (error.status === 401) {
      if (!(await askForKey())) notice(t("keyNeeded"));
      return;
    }
    notice(error.status ? explain(error) : t("retrying"));
    setTimeout(findModels, kRetry);
    return;
  }
  notice(null);
  getJson("version").then(({version}) => { $("version").textContent = `Whippet ${version}`; }, () => {});
}

function choose(group, value) {
  for (const button of $(group).children) {
    const chosen = button.dataset.value === value;
    button.setAttribute("aria-checked", String(chosen));
    button.tabIndex = chosen ? 0 : -1;
  }
}

function applyTheme(value) {
  choose("theme", value);
  if (value === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = value;
  dashboard.draw();
}

function applyLanguage(value) {
  choose("language", value);
  setLanguage(value);
  settings.build();
  dashboard.build();
  chat.rebuild();
  sidebar.show();
  showSuggestions();
  showModel();
  showTitle();
  showPulse();
}

function makeChoices(group, apply) {
  const pick = (button) => {
    setPreference(group, button.dataset.value);
    apply(button.dataset.value);
    button.focus();
  };
  $(group).addEventListener("click", (event) => event.target.dataset.value && pick(event.target));
  $(group).addEventListener("keydown", (event) => {
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    if (!step) return;
    event.preventDefault();
    const buttons = [...$(group).children];
    pick(buttons[(buttons.indexOf(event.target) + step + buttons.length) % buttons.length]);
  });
  apply(preferences()[group] ?? "auto");
}

function showSuggestions() {
  const texts = Array.from({length: kSuggestions}, (_, i) => t(`suggestion${i + 1}`));
  $("suggestions").replaceChildren(...texts.map((text) =>
    el("button", {type: "button", onclick: () => chat.send(text)}, text)));
}

function closeDrawers() {
  document.body.classList.remove("sidebar-open");
  if (narrow.matches) toggleSettings(false);
  $("scrim").hidden = true;
}

function openSidebar() {
  document.body.classList.add("sidebar-open");
  $("scrim").hidden = false;
  $("close-sidebar").focus();
}

function toggleSettings(open) {
  $("settings").hidden = !open;
  $("open-settings").setAttribute("aria-expanded", String(open));
  if (narrow.matches) $("scrim").hidden = !open;
}

function fitPrompt() {
  $("prompt").style.height = "auto";
  $("prompt").style.height = `${$("prompt").scrollHeight}px`;
}

function sendPrompt() {
  if (!chat.send($("prompt").value)) return;
  $("prompt").value = "";
  fitPrompt();
}

function onEscape() {
  if (!$("scrim").hidden) return closeDrawers();
  chat.stop();
}

function connect() {
  $("composer").addEventListener("submit", (event) => { event.preventDefault(); sendPrompt(); });
  $("prompt").addEventListener("input", fitPrompt);
  $("prompt").addEventListener("keydown", (event) => {
    // Enter that ends the composition of a Chinese word is no Enter.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    sendPrompt();
  });
  $("stop").addEventListener("click", () => { chat.stop(); $("prompt").focus(); });
  $("new-chat").addEventListener("click", () => { chat.startNew(); location.hash = "#chat"; closeDrawers(); $("prompt").focus(); });
  $("open-sidebar").addEventListener("click", openSidebar);
  $("close-sidebar").addEventListener("click", () => { closeDrawers(); $("open-sidebar").focus(); });
  $("open-settings").addEventListener("click", () => toggleSettings($("settings").hidden));
  $("close-settings").addEventListener("click", () => { toggleSettings(false); $("open-settings").focus(); });
  $("scrim").addEventListener("click", closeDrawers);
  $("model").addEventListener("change", () => { setPreference("model", $("model").value); showModel(); });
  addEventListener("hashchange", showView);
  addEventListener("pagehide", () => chat.keep());
  addEventListener("keydown", (event) => {
    if ($("key-dialog").open) return;
    if (event.key === "Escape") onEscape();
    // Whoever just begins to type means the message box.
    const types = event.key.length === 1 && event.key !== " " && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (types && document.activeElement === document.body && $("dashboard").hidden) $("prompt").focus();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dashboard.draw());
  narrow.addEventListener("change", closeDrawers);
  watchConversations((id) => { if (id) chat.reload(loadConversation(id)); sidebar.show(); });
}

for (const node of document.querySelectorAll("[data-icon]")) node.prepend(icon(node.dataset.icon));
connect();
makeChoices("theme", applyTheme);
makeChoices("language", applyLanguage);
chat.open(loadConversation(preferences().open) ?? chat.conversation);
showView();
findModels();
feed.start();
if (!narrow.matches) $("prompt").focus();
