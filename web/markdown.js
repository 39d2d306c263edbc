// Markdown to DOM nodes, as it streams in. The text comes from a model and is never trusted: no HTML is parsed, every
// text goes in as text, only web addresses become links (markdown_inline.js). Blocks that did not change since the
// last update keep their nodes.

import {copyText, el, iconButton} from "./dom.js";
import {highlight} from "./highlight.js";
import {t} from "./i18n.js";
import {renderInline} from "./markdown_inline.js";

const kMaxDepth = 8;  // of lists and quotes inside each other
const kLongLine = 2000;  // beyond it a line is no table row
const kFence = /^ {0,3}(`{3,}|~{3,})(.*)$/;
const kHeading = /^ {0,3}(#{1,6})(?:[ \t]+|$)/;
const kRule = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const kQuote = /^ {0,3}> ?/;
const kItem = /^( *)([-*+]|\d{1,9}[.)])(?: {1,4}|\t|$)/;
const kTableRule = /^\|? *:?-+:? *(?:\| *:?-+:? *)*\|?$/;  // of a trimmed line

const blank = (line) => line.trim() === "";

function fenceOf(line) {
  const match = kFence.exec(line);
  // A backtick after the opening ones makes it code inside a paragraph.
  return match && !(match[1][0] === "`" && match[2].includes("`")) ? match : null;
}

function isTable(lines, i) {
  const [head, rule] = [lines[i], lines[i + 1]];
  return rule !== undefined && head.length < kLongLine && rule.length < kLongLine && head.includes("|") &&
    rule.includes("-") && kTableRule.test(rule.trim()) && cells(head).length === cells(rule).length;
}

// Whether line i ends a paragraph that runs before it.
function interrupts(lines, i) {
  const line = lines[i];
  const item = kItem.exec(line);
  return blank(line) || fenceOf(line) || kHeading.test(line) || kRule.test(line) || kQuote.test(line) ||
    (item && line.length > item[0].length && (item[2].length === 1 || /^1[.)]/.test(item[2]))) || isTable(lines, i);
}

function endOfFence(lines, start, [, mark]) {
  const indent = lines[start].indexOf(mark);
  const closes = (line) => {
    const match = kFence.exec(line);
    return match && match[1][0] === mark[0] && match[1].length >= mark.length && blank(match[2]);
  };
  let end = start + 1;
  while (end < lines.length && !closes(lines[end])) ++end;
  return {end, indent, closed: end < lines.length};
}

// A list runs over its items, lines indented below them, and blank lines between.
function endOfList(lines, start, first) {
  const ordered = first[2].length > 1;
  const base = first[1].length;
  let end = start + 1;
  for (let i = end; i < lines.length; ++i) {
    if (blank(lines[i])) continue;
    const item = kItem.exec(lines[i]);
    const indent = lines[i].search(/\S/);
    const lazy = i === end && !interrupts(lines, i);  // goes on with the paragraph above
    const sibling = item && (item[2].length > 1) === ordered && !kRule.test(lines[i]);
    if (indent <= base && !(sibling && indent >= base) && !lazy) break;
    end = i + 1;
  }
  return end;
}

// Yields {kind, start, end, ...} over all lines; blank lines belong to no block.
function* blocksOf(lines, depth) {
  for (let i = 0; i < lines.length;) {
    const start = i;
    const line = lines[i];
    const fence = fenceOf(line);
    const item = kItem.exec(line);
    if (blank(line)) {
      ++i;
    } else if (fence) {
      const {end, indent, closed} = endOfFence(lines, i, fence);
      i = closed ? end + 1 : end;
      yield {kind: "code", start, end: i, language: fence[2].trim().split(/[\s{]/, 1)[0].slice(0, 40), indent, closed};
    } else if (kHeading.test(line)) {
      yield {kind: "heading", start, end: ++i};
    } else if (kRule.test(line)) {
      yield {kind: "rule", start, end: ++i};
    } else if (kQuote.test(line) && depth < kMaxDepth) {
      while (i < lines.length && kQuote.test(lines[i])) ++i;
      yield {kind: "quote", start, end: i};
    } else if (item && depth < kMaxDepth) {
      i = endOfList(lines, i, item);
      yield {kind: "list", start, end: i, ordered: item[2].length > 1, number: parseInt(item[2], 10)};
    } else if (isTable(lines, i)) {
      i += 2;
      while (i < lines.length && lines[i].includes("|") && lines[i].length < kLongLine) ++i;
      yield {kind: "table", start, end: i};
    } else {
      ++i;
      while (i < lines.length && !interrupts(lines, i)) ++i;
      yield {kind: "paragraph", start, end: i};
    }
  }
}

function cells(row) {
  const parts = row.trim().replace(/^\|/, "").split(/(?<!\\)\|/);
  if (parts.length > 1 && blank(parts.at(-1))) parts.pop();
  return parts.map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function inlineElement(tag, text, attributes = {}) {
  const node = el(tag, attributes);
  renderInline(node, text);
  return node;
}

function renderHeading(line) {
  const level = kHeading.exec(line)[1].length;
  const text = line.trim().slice(level).trim();
  let end = text.length;
  while (text[end - 1] === "#") --end;
  // The page's own headings are h1 and h2.
  return inlineElement(`h${Math.min(6, level + 2)}`, end === 0 || text[end - 1] === " " ? text.slice(0, end).trim() : text);
}

function renderTable(lines) {
  const align = cells(lines[1]).map((rule) => (rule.endsWith(":") ? (rule.startsWith(":") ? "center" : "right") : "left"));
  const row = (line, tag) => {
    const found = cells(line);
    return el("tr", {}, ...align.map((side, i) => inlineElement(tag, found[i] ?? "", {class: `to-${side}`})));
  };
  const body = el("tbody");
  for (const line of lines.slice(2)) body.append(row(line, "td"));
  const table = el("table", {}, el("thead", {}, row(lines[0], "th")), body);
  return el("div", {class: "table", tabindex: "0"}, table);
}

function renderList(lines, block, depth) {
  const items = [];
  const base = lines[0].search(/\S/);
  for (const line of lines) {
    const match = kItem.exec(line);
    if (match && match[1].length <= base && (match[2].length > 1) === block.ordered) {
      items.push({width: match[0].length, lines: [line.slice(match[0].length)]});
    } else {
      const item = items.at(-1);
      const indent = Math.max(0, line.search(/\S/));
      item.lines.push(line.slice(Math.min(indent, item.width)));
    }
  }
  const node = el(block.ordered ? "ol" : "ul", block.ordered && block.number !== 1 ? {start: block.number} : {});
  for (const item of items) {
    const child = el("li");
    const task = /^\[([ xX])\] /.exec(item.lines[0]);
    if (task) {
      item.lines[0] = item.lines[0].slice(4);
      child.append(el("span", {class: "task"}, task[1] === " " ? "☐ " : "☑ "));
    }
    const loose = item.lines.some((line, i) => blank(line) && i + 1 < item.lines.length && !blank(item.lines[i + 1]));
    renderBlocks(child, item.lines, depth + 1, !loose);
    node.append(child);
  }
  return node;
}

export class CodeBlock {
  constructor(language) {
    this.code = el("code");
    this.language = language;
    const label = t("copy");
    const button = iconButton("copy", label, () => copyText(this.code.textContent, button, label, t("copied")));
    const head = el("div", {class: "code-head"}, el("span", {}, language), button);
    this.node = el("div", {class: "code"}, head, el("pre", {tabindex: "0"}, this.code));
  }
  // Colours come with the end of the block: a half one would flicker.
  update(text, closed) {
    if (closed) this.code.replaceChildren(highlight(text, this.language));
    else this.code.textContent = text;
  }
}

function codeText(lines, block) {
  const body = lines.slice(block.start + 1, block.closed ? block.end - 1 : block.end);
  const strip = (line) => line.slice(Math.min(block.indent, Math.max(0, line.search(/\S|$/))));
  return (block.indent ? body.map(strip) : body).join("\n");
}

function renderBlock(lines, block, depth, tight) {
  const own = lines.slice(block.start, block.end);
  switch (block.kind) {
    case "code": {
      const code = new CodeBlock(block.language);
      code.update(codeText(lines, block), block.closed);
      return code.node;
    }
    case "heading": return renderHeading(own[0]);
    case "rule": return el("hr");
    case "quote": {
      const node = el("blockquote");
      renderBlocks(node, own.map((line) => line.replace(kQuote, "")), depth + 1, false);
      return node;
    }
    case "list": return renderList(own, block, depth);
    case "table": return renderTable(own);
    default: return inlineElement(tight ? "span" : "p", own.map((line) => line.trim()).join("\n"));
  }
}

function renderBlocks(parent, lines, depth, tight) {
  for (const block of blocksOf(lines, depth)) parent.append(renderBlock(lines, block, depth, tight));
}

const isClosed = (block, finished) => block.kind !== "code" || block.closed || finished;

// One answer on the screen.
export class MarkdownView {
  constructor(root) {
    this.root = root;
    this.shown = [];  // {source, node, kind, code}
  }

  update(text, finished) {
    const lines = text.replaceAll("\r", "").split("\n");
    const blocks = [...blocksOf(lines, 0)];
    const same = (i) => {
      const [old, block] = [this.shown[i], blocks[i]];
      return block && old?.source === lines.slice(block.start, block.end).join("\n") && old.closed === isClosed(block, finished);
    };
    let keep = 0;
    while (keep < this.shown.length && same(keep)) ++keep;
    if (this.growCode(lines, blocks, keep, finished)) ++keep;
    for (const old of this.shown.splice(keep)) old.node.remove();
    for (const block of blocks.slice(keep)) this.append(lines, block, finished);
  }

  // The code block that is being written keeps its node, so that it can be scrolled and copied meanwhile.
  growCode(lines, blocks, i, finished) {
    const [old, block] = [this.shown[i], blocks[i]];
    if (!old?.code || block?.kind !== "code" || old.code.language !== block.language) return false;
    old.closed = isClosed(block, finished);
    old.code.update(codeText(lines, block), old.closed);
    old.source = lines.slice(block.start, block.end).join("\n");
    return true;
  }

  append(lines, block, finished) {
    const shown = {source: lines.slice(block.start, block.end).join("\n"), closed: isClosed(block, finished)};
    if (block.kind === "code") {
      shown.code = new CodeBlock(block.language);
      shown.code.update(codeText(lines, block), shown.closed);
      shown.node = shown.code.node;
    } else {
      shown.node = renderBlock(lines, block, 0, false);
    }
    this.shown.push(shown);
    this.root.append(shown.node);
  }
}
