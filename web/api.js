// Speaks to the server: the key, JSON, streamed events, and errors that a person can read.

import {t} from "./i18n.js";

const kPatience = 10_000;  // ms for an answer that is no stream
const kKey = "whippet.key";

let key = "";
try {
  key = sessionStorage.getItem(kKey) ?? "";
} catch {
  // No storage in this browser: the key lives as long as the page.
}

export function setKey(text) {
  key = text;
  try {
    sessionStorage.setItem(kKey, text);
  } catch {
    // As above.
  }
}

export const hasKey = () => key !== "";

export class ServerError extends Error {
  constructor(status, message, code = null) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

// What to tell a person about a failure.
export function explain(error) {
  if (!(error instanceof ServerError)) return t("noAnswer");
  if (error.status === 401) return t("keyNeeded");
  if (error.code === "context_length_exceeded") return t("tooLong");
  if (error.status === 429) return t("busy");
  if (error.status === 503) return t("loading");
  return error.status ? t("failed", {status: error.status, message: error.message}) : error.message;
}

async function errorOf(response) {
  const text = await response.text().catch(() => "");
  try {
    const {error} = JSON.parse(text);
    return new ServerError(response.status, error.message ?? String(error), error.code);
  } catch {
    return new ServerError(response.status, text.slice(0, 300) || response.statusText);
  }
}

async function call(path, options = {}) {
  for (;;) {
    const used = key;
    const headers = {...options.headers};
    if (used) headers.Authorization = `Bearer ${used}`;
    const response = await fetch(path, {...options, headers, cache: "no-store"});
    if (response.ok) return response;
    // A key that was given while this waited deserves its try.
    if (response.status !== 401 || used === key) throw await errorOf(response);
  }
}

export async function getJson(path) {
  const response = await call(path, {signal: AbortSignal.timeout(kPatience)});
  try {
    return await response.json();
  } catch {
    throw new ServerError(response.status, t("notJson"));
  }
}

// The data of the events of an SSE stream. Comments and other fields are passed over; a line may end in CR, LF, both.
export async function* readEvents(stream) {
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  let rest = "";
  let data = [];
  try {
    for (;;) {
      const {done, value} = await reader.read();
      rest += done ? decoder.decode() + "\n\n" : decoder.decode(value, {stream: true});
      // A CR at the end may be half of a CRLF.
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      for (const line of lines) {
        if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
        else if (line === "" && data.length) yield data.splice(0).join("\n");
      }
      if (done) return;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// Streams a chat completion; calls onText(piece, isThinking), and returns {reason, usage}. Throws ServerError, TypeError where
// the network fails, and AbortError after signal.
export async function streamChat(body, signal, onText) {
  const response = await call("v1/chat/completions", {
    method: "POST",
    headers: {"Content-Type": "application/json"},
    body: JSON.stringify({...body, stream: true, stream_options: {include_usage: true}}),
    signal,
  });
  let reason = null;
  let usage = null;
  for await (const data of readEvents(response.body)) {
    if (data === "[DONE]") return {reason, usage};
    let event;
    try {
      event = JSON.parse(data);
    } catch {
      throw new ServerError(0, t("notJson"));
    }
    if (event.error) throw new ServerError(0, event.error.message ?? String(event.error), event.error.code);
    const choice = event.choices?.[0];
    const thought = choice?.delta?.reasoning_content ?? choice?.delta?.reasoning;
    if (thought) onText(thought, true);
    if (choice?.delta?.content) onText(choice.delta.content, false);
    reason = choice?.finish_reason ?? reason;
    usage = event.usage ?? usage;
  }
  throw new ServerError(0, t("cutStream"));
}
