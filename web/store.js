// Conversations and preferences, kept in the browser. One entry of localStorage a conversation, so that two tabs
// do not overwrite each other's. A conversation is {id, title, updated, system, sampling, messages}; a message is
// {role, content} and, of an answer, {stats, reason, error}, and its thinking: {reasoning, thought: seconds}.

const kPrefix = "whippet.chat.";
const kPreferences = "whippet.preferences";

function read(name) {
  try {
    return JSON.parse(localStorage.getItem(name));
  } catch {
    return null;  // no storage, or not what this page wrote
  }
}

function write(name, value) {
  try {
    localStorage.setItem(name, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

// What comes from the store may be from another version of the page, or edited by hand.
function restore(value) {
  if (typeof value?.id !== "string" || !Array.isArray(value.messages)) return null;
  const isMessage = (m) => typeof m?.content === "string" && (m.role === "user" || m.role === "assistant") &&
    typeof (m.reasoning ?? "") === "string";
  return {
    id: value.id,
    title: typeof value.title === "string" ? value.title : "",
    updated: Number(value.updated) || 0,
    system: typeof value.system === "string" ? value.system : "",
    sampling: value.sampling && typeof value.sampling === "object" ? value.sampling : {},
    messages: value.messages.filter(isMessage),
  };
}

export function preferences() {
  const value = read(kPreferences);
  return value && typeof value === "object" ? value : {};
}

export const setPreference = (name, value) => write(kPreferences, {...preferences(), [name]: value});

// Newest first.
export function listConversations() {
  const found = [];
  try {
    for (let i = 0; i < localStorage.length; ++i) {
      const name = localStorage.key(i);
      const value = name.startsWith(kPrefix) && restore(read(name));
      if (value) found.push(value);
    }
  } catch {
    return [];
  }
  return found.sort((a, b) => b.updated - a.updated);
}

export const loadConversation = (id) => restore(read(kPrefix + id));

// Returns whether there was room for it.
export const saveConversation = (conversation) => write(kPrefix + conversation.id, conversation);

export function removeConversation(id) {
  try {
    localStorage.removeItem(kPrefix + id);
  } catch {
    // Nothing is stored, then.
  }
}

// onChange(id) where another tab changed a conversation.
export function watchConversations(onChange) {
  addEventListener("storage", (event) => {
    if (event.key === null || event.key.startsWith(kPrefix)) onChange(event.key?.slice(kPrefix.length) ?? null);
  });
}

// Begins with the system prompt and sampling that were used last.
export function newConversation() {
  const {system = "", sampling = {}} = preferences();
  const id = `${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`;
  return {id, title: "", updated: Date.now(), system, sampling: {...sampling}, messages: []};
}

export function titleOf(text) {
  const line = text.trim().split("\n", 1)[0];
  return line.length > 60 ? `${line.slice(0, 57).trimEnd()}…` : line;
}

export function asMarkdown(conversation) {
  const parts = [`# ${conversation.title}`];
  if (conversation.system) parts.push(`> ${conversation.system.replaceAll("\n", "\n> ")}`);
  for (const {role, content} of conversation.messages) parts.push(`**${role}**\n\n${content}`);
  return parts.join("\n\n") + "\n";
}
