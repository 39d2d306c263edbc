// The inside of a paragraph: code, emphasis, links, bare addresses, line breaks. Builds DOM nodes; what it does
// not know stays text. Linear in the length of the text: what was looked for once and not found is not looked for
// again.

import {el} from "./dom.js";

const kMaxDepth = 6;
const kMaxUrl = 2000;
const kEscapable = /[!-/:-@[-`{-~]/;
const kSpace = /\s/;
const kWord = /[\p{L}\p{N}_]/u;
const kAddress = /https?:\/\/[^\s<>"'`，。、；：！？（）「」『』【】《》]{1,2000}/iy;
const kLineBreak = /<br\s{0,4}\/?>/iy;

// The address if it is one of the web, else null. Nothing else becomes a link.
export function safeAddress(text) {
  if (text.length > kMaxUrl || !/^https?:\/\//i.test(text)) return null;
  try {
    const url = new URL(text);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : null;
  } catch {
    return null;
  }
}

function link(address) {
  return el("a", {href: address, target: "_blank", rel: "noopener noreferrer nofollow", title: address});
}

// A bare address ends before punctuation that belongs to the sentence around it.
function trimAddress(address) {
  let end = address.length;
  for (; end > 0; --end) {
    const last = address[end - 1];
    if (last === ")" && address.slice(0, end).includes("(")) break;
    if (!".,;:!?)*_~]".includes(last)) break;
  }
  return address.slice(0, end);
}

// indexOf that answers from memory where it can; positions asked for must not fall.
class Finder {
  constructor(text) {
    this.text = text;
    this.next = new Map();
  }
  find(what, from) {
    const known = this.next.get(what);
    if (known !== undefined && (known === -1 || known >= from)) return known;
    const found = this.text.indexOf(what, from);
    this.next.set(what, found);
    return found;
  }
}

class Inline {
  constructor(parent, text, depth) {
    Object.assign(this, {parent, text, depth, at: 0, plain: 0});
    this.finder = new Finder(text);
    this.unclosed = new Set();  // marks that are known to have no end from here on
  }

  // Puts out the text before `end`, and goes on at `next`.
  flush(end, next) {
    if (end > this.plain) this.parent.append(this.text.slice(this.plain, end));
    this.at = this.plain = next;
  }

  node(node, next) {
    this.flush(this.at, next);
    this.parent.append(node);
  }

  // An element around text[from, to), which is read in turn.
  wrap(node, from, to, next) {
    const inner = this.text.slice(from, to);
    if (this.depth >= kMaxDepth) node.append(inner);
    else renderInline(node, inner, this.depth + 1);
    this.node(node, next);
  }

  code() {
    const {text, at} = this;
    let ticks = at;
    while (text[ticks] === "`") ++ticks;
    const mark = text.slice(at, ticks);
    let end = this.unclosed.has(mark) ? -1 : text.indexOf(mark, ticks);
    while (end !== -1 && (text[end + mark.length] === "`" || text[end - 1] === "`")) {
      while (text[end] === "`") ++end;
      end = text.indexOf(mark, end);
    }
    if (end === -1) {
      this.unclosed.add(mark);
      this.at = ticks;
      return;
    }
    let inner = text.slice(ticks, end);
    if (inner.startsWith(" ") && inner.endsWith(" ") && inner.trim()) inner = inner.slice(1, -1);
    this.node(el("code", {}, inner), end + mark.length);
  }

  // Where `mark` closes what it opened before `from`, or -1.
  closing(mark, from) {
    const {text} = this;
    const c = mark[0];
    for (let end = text.indexOf(mark, from); end !== -1; end = text.indexOf(mark, end)) {
      let after = end;
      while (text[after] === c) ++after;
      const run = after - end;
      const fits = mark.length === 1 ? run !== 2 : true;
      const last = after - mark.length;
      if (fits && last > from - 1 && !kSpace.test(text[end - 1]) && !(c === "_" && kWord.test(text[after] ?? ""))) return last;
      end = after;
    }
    return -1;
  }

  emphasis(c) {
    const {text, at} = this;
    let run = at;
    while (text[run] === c) ++run;
    const length = run - at;
    const opens = run < text.length && !kSpace.test(text[run]) && !(c === "_" && kWord.test(text[at - 1] ?? ""));
    const mark = length >= 2 ? c + c : c;
    if (opens && length <= 3 && !(c === "~" && length !== 2) && !this.unclosed.has(mark)) {
      const from = at + mark.length;
      const end = this.closing(mark, run);
      if (end !== -1) {
        const tag = c === "~" ? "del" : mark.length === 2 ? "strong" : "em";
        this.wrap(el(tag), from, end, end + mark.length);
        return;
      }
      this.unclosed.add(mark);
    }
    this.at = run;
  }

  // [text](address "title"), and ![text](address) as a link: images are not fetched.
  link(open) {
    const {text} = this;
    const middle = this.finder.find("](", open);
    const inner = text.indexOf("[", open + 1);
    this.at = open + 1;
    if (middle === -1 || (inner !== -1 && inner < middle)) return;
    let depth = 1;
    let end = middle + 2;
    for (const stop = Math.min(text.length, end + kMaxUrl); end < stop; ++end) {
      if (text[end] === "(") ++depth;
      else if (text[end] === ")" && --depth === 0) break;
      else if (text[end] === "[" || text[end] === "\n") return;
    }
    if (depth !== 0 || text[end] !== ")") return;
    const [target] = text.slice(middle + 2, end).trim().split(/\s/, 1);
    const address = safeAddress(target.replace(/^<|>$/g, ""));
    if (!address) return;
    const begin = text[open - 1] === "!" ? open - 1 : open;
    this.at = begin < this.plain ? open : begin;
    this.wrap(link(address), open + 1, middle, end + 1);
  }

  bareAddress() {
    kAddress.lastIndex = this.at;
    const match = kAddress.exec(this.text);
    const shown = match ? trimAddress(match[0]) : "";
    const address = safeAddress(shown);
    if (!address) {
      ++this.at;
      return;
    }
    const node = link(address);
    node.append(shown);
    this.node(node, this.at + shown.length);
  }

  less() {
    kLineBreak.lastIndex = this.at;
    const match = kLineBreak.exec(this.text);
    if (match) this.node(el("br"), this.at + match[0].length);
    else ++this.at;
  }

  run() {
    const {text} = this;
    while (this.at < text.length) {
      const c = text[this.at];
      if (c === "\\" && kEscapable.test(text[this.at + 1] ?? "")) this.escape();
      else if (c === "`") this.code();
      else if (c === "*" || c === "_" || c === "~") this.emphasis(c);
      else if (c === "[" && this.depth < kMaxDepth) this.link(this.at);
      else if (c === "<") this.less();
      else if (c === "\n") this.node(el("br"), this.at + 1);
      else if ((c === "h" || c === "H") && !kWord.test(text[this.at - 1] ?? "") && !this.parent.closest("a")) this.bareAddress();
      else ++this.at;
    }
    this.flush(text.length, text.length);
  }

  escape() {
    this.flush(this.at, this.at + 1);
    ++this.at;
  }
}

export function renderInline(parent, text, depth = 0) {
  new Inline(parent, text, depth).run();
}
