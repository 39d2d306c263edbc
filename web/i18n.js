// The words of the page in English and Chinese. t("key", {name: value}) fills {name}; data-t, data-t-label and
// data-t-placeholder in the page name a key.

const kEnglish = {
  skip: "Skip to the message box",
  sidebar: "Conversations", views: "Views", close: "Close", chat: "Chat", dashboard: "Dashboard",
  newChat: "New chat", untitled: "New chat", auto: "Auto", light: "Light", dark: "Dark", theme: "Colours",
  language: "Language", settings: "Settings", model: "Model", messages: "Messages", prompt: "Message",
  welcome: "What is on your mind?", welcomeModel: "{model} · up to {length} tokens",
  placeholder: "Ask anything", send: "Send", stop: "Stop", toEnd: "To the end",
  hint: "Enter sends, Shift+Enter starts a new line, Esc stops",
  suggestion1: "Explain in three sentences why the sky is blue.",
  suggestion2: "Write a haiku about a very fast dog.",
  suggestion3: "Write a Python function that counts the words of a text.",
  suggestion4: "Give me five ideas for a rainy Sunday.",
  system: "System prompt", systemPlaceholder: "As the model's template has it",
  settingsNote: "Kept with this conversation; the next one begins with the same.",
  temperature: "Temperature", temperatureHelp: "Low: sure and plain. High: varied. 0: always the likeliest word.",
  topP: "Top p", topPHelp: "Draw only from the likeliest words that make up this share.",
  topK: "Top k", topKHelp: "Draw only from this many of the likeliest words; 0: all.",
  maxTokens: "Longest answer", maxTokensHelp: "Tokens; empty: what is left of the context.",
  repetition: "Repetition penalty", repetitionHelp: "Above 1 the model repeats itself less.",
  byModel: "auto", reset: "Back to the model's own", slider: "{name}, slider",
  copy: "Copy", copied: "Copied", regenerate: "Answer again", edit: "Edit", save: "Send", cancel: "Cancel",
  goOn: "Go on", rename: "Rename", remove: "Delete", export: "Save as a file", undo: "Undo",
  removed: "Conversation deleted", replaced: "What followed was replaced", more: "More for {title}",
  thinking: "Thinking…", thought: "Thought for {time}", thoughts: "Thoughts",
  you: "You", answer: "Answer", answering: "Answering…", answered: "Answer: {text}", stopped: "Stopped",
  cutOff: "The answer reached its longest length.", interrupted: "Interrupted",
  token: "1 token", tokens: "{n} tokens", perSecond: "{n} tokens/s", firstAfter: "first after {time}", cached: "{n} of {of} prompt tokens cached",
  statsLabel: "How fast it was",
  keyTitle: "This server asks for a key", keyText: "It stays in this tab and is forgotten when the tab closes.",
  keyWrong: "The server did not take that key.", key: "API key", ok: "Continue",
  noAnswer: "The server cannot be reached.", retrying: "The server cannot be reached; trying again.",
  loading: "The server is loading its model or shutting down.", cutStream: "The connection broke before the answer was complete.",
  keyNeeded: "The server needs an API key.", busy: "The server is busy. Try again in a moment.",
  tooLong: "The conversation is too long for this model. Start a new chat, or edit an earlier message.",
  failed: "The server answered {status}: {message}", notJson: "The server answered something that is no JSON.",
  full: "The browser's store for this page is full: this conversation is not kept. Delete some older ones.",
  tryAgain: "Try again", empty: "(empty answer)",
  running: "Running", waiting: "Waiting", throughput: "Tokens per second", generated: "answers", prompts: "prompts",
  ttft: "Time to first token", itl: "Between tokens", mean: "mean", requests: "Requests", kv: "KV cache",
  used: "in use", reusable: "reusable", prefix: "Prefix-cache hits", hits: "hits", batch: "Batch composition",
  batchNote: "rows of the last step, each second", decode: "answer rows", prefill: "prompt rows", memory: "Memory", weights: "weights",
  kvUsed: "KV in use", process: "process", now: "now", ago: "{n} min ago", since: "since the start: p50 {p50}, p99 {p99}",
  answers: "Answers", steps: "Steps", preemptions: "Preemptions", rejected: "Refused", promptTokens: "Prompt tokens",
  generatedTokens: "Answer tokens", stop_reason_stop: "ended", stop_reason_length: "cut at length",
  stop_reason_abort: "cancelled", stop_reason_timeout: "timed out", stop_reason_error: "failed",
  quiet: "Nothing yet. Ask something in the chat and watch.", blocks: "{used} of {total} blocks",
  chartLabel: "{name}: now {value}", perAnswer: "per second",
};

const kChinese = {
  skip: "跳到输入框",
  sidebar: "对话", views: "视图", close: "关闭", chat: "聊天", dashboard: "仪表盘",
  newChat: "新对话", untitled: "新对话", auto: "自动", light: "浅色", dark: "深色", theme: "配色",
  language: "语言", settings: "设置", model: "模型", messages: "消息", prompt: "消息",
  welcome: "想聊点什么？", welcomeModel: "{model} · 最长 {length} 个 token",
  placeholder: "随便问点什么", send: "发送", stop: "停止", toEnd: "到末尾",
  hint: "Enter 发送，Shift+Enter 换行，Esc 停止",
  suggestion1: "用三句话解释天空为什么是蓝色的。",
  suggestion2: "写一首关于飞奔的小狗的短诗。",
  suggestion3: "写一个统计文本单词数的 Python 函数。",
  suggestion4: "下雨的星期天可以做什么？给我五个主意。",
  system: "系统提示词", systemPlaceholder: "使用模型模板自带的内容",
  settingsNote: "随本对话保存；新对话沿用同样的设置。",
  temperature: "温度", temperatureHelp: "低：稳妥朴素；高：多样；0：总取最可能的词。",
  topP: "Top p", topPHelp: "只从累计概率达到此比例的词中抽取。",
  topK: "Top k", topKHelp: "只从最可能的若干个词中抽取；0 为不限。",
  maxTokens: "回答长度上限", maxTokensHelp: "以 token 计；留空则用完剩余上下文。",
  repetition: "重复惩罚", repetitionHelp: "大于 1 时模型更少重复自己。",
  byModel: "自动", reset: "恢复为模型默认", slider: "{name}，滑块",
  copy: "复制", copied: "已复制", regenerate: "重新回答", edit: "编辑", save: "发送", cancel: "取消",
  goOn: "继续", rename: "重命名", remove: "删除", export: "导出为文件", undo: "撤销",
  removed: "对话已删除", replaced: "其后的内容已被替换", more: "“{title}”的更多操作",
  thinking: "思考中…", thought: "思考了 {time}", thoughts: "思考过程",
  you: "你", answer: "回答", answering: "正在回答…", answered: "回答：{text}", stopped: "已停止",
  cutOff: "回答已达到长度上限。", interrupted: "已中断",
  token: "1 个 token", tokens: "{n} 个 token", perSecond: "{n} token/秒", firstAfter: "首个 token {time}", cached: "提示词 {of} 个 token 中 {n} 个来自缓存",
  statsLabel: "速度",
  keyTitle: "此服务器需要密钥", keyText: "密钥只保留在本标签页中，关闭后即忘记。",
  keyWrong: "服务器不接受该密钥。", key: "API 密钥", ok: "继续",
  noAnswer: "无法连接服务器。", retrying: "无法连接服务器，正在重试。",
  loading: "服务器正在加载模型或正在关闭。", cutStream: "回答完成之前连接中断了。",
  keyNeeded: "服务器需要 API 密钥。", busy: "服务器繁忙，请稍后再试。",
  tooLong: "对话对此模型来说太长了。请新建对话，或编辑较早的消息。",
  failed: "服务器返回 {status}：{message}", notJson: "服务器返回的不是 JSON。",
  full: "浏览器为此页面留的存储已满：本对话没有保存。请删除一些旧对话。",
  tryAgain: "重试", empty: "（空回答）",
  running: "运行中", waiting: "等待中", throughput: "每秒 token 数", generated: "回答", prompts: "提示词",
  ttft: "首个 token 延迟", itl: "token 间隔", mean: "平均", requests: "请求", kv: "KV 缓存",
  used: "使用中", reusable: "可复用", prefix: "前缀缓存命中率", hits: "命中", batch: "批次构成",
  batchNote: "每秒取最近一步的行数", decode: "回答行", prefill: "提示词行", memory: "内存", weights: "权重",
  kvUsed: "KV 使用中", process: "进程", now: "现在", ago: "{n} 分钟前", since: "启动以来：p50 {p50}，p99 {p99}",
  answers: "回答数", steps: "步数", preemptions: "抢占", rejected: "被拒绝", promptTokens: "提示词 token",
  generatedTokens: "回答 token", stop_reason_stop: "正常结束", stop_reason_length: "达到长度",
  stop_reason_abort: "已取消", stop_reason_timeout: "超时", stop_reason_error: "失败",
  quiet: "还没有数据。去聊天里问一句，再回来看。", blocks: "{total} 块中的 {used} 块",
  chartLabel: "{name}：现在 {value}", perAnswer: "每秒",
};

const kWords = {en: kEnglish, zh: kChinese};
let language = "en";

export const languageKeys = () => Object.fromEntries(Object.entries(kWords).map(([k, v]) => [k, Object.keys(v)]));

export function t(key, values = {}) {
  const words = kWords[language][key] ?? kEnglish[key];
  return words.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

// choice: "auto" | "en" | "zh". Auto is the browser's first language that the page speaks.
export function setLanguage(choice) {
  const wanted = choice === "auto" ? navigator.languages ?? [navigator.language] : [choice];
  language = wanted.map((tag) => tag.slice(0, 2).toLowerCase()).find((tag) => tag in kWords) ?? "en";
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  for (const node of document.querySelectorAll("[data-t]")) node.textContent = t(node.dataset.t);
  for (const node of document.querySelectorAll("[data-t-placeholder]")) node.placeholder = t(node.dataset.tPlaceholder);
  for (const node of document.querySelectorAll("[data-t-label]")) {
    node.setAttribute("aria-label", t(node.dataset.tLabel));
    if (node.matches("button, a")) node.title = t(node.dataset.tLabel);
  }
}

export const formatCount = (n) => new Intl.NumberFormat(document.documentElement.lang).format(n);

export function formatSeconds(seconds) {
  if (seconds === 0) return "0";
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 0.01) return `${(seconds * 1e3).toFixed(1)} ms`;
  if (seconds < 1) return `${Math.round(seconds * 1e3)} ms`;
  return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
}

export function formatBytes(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; bytes >= 1024 && i + 1 < units.length; ++i) bytes /= 1024;
  return `${bytes >= 100 || i === 0 ? Math.round(bytes) : bytes.toFixed(1)} ${units[i]}`;
}

export function formatRate(n) {
  return formatCount(n >= 100 ? Math.round(n) : Number(n.toFixed(1)));
}
