// Colours for code: comments, strings, numbers, common words. One pass, one pattern for each style of comment; what
// it does not know stays plain.

import {el} from "./dom.js";

const kLongest = 50_000;  // characters; longer code stays plain

const kWords = new Set(("and as assert async auto await bool break case catch char class const constexpr continue def " +
  "default defer del delete do done double elif else end enum except export extends extern false False fi final finally " +
  "float fn for from func function go if impl implements import in include int interface is lambda let long loop match " +
  "mod module mut namespace new nil None nonlocal not null nullptr or override package pass private protected pub public " +
  "raise range return select self short signed sizeof static struct super switch template then this throw trait true True " +
  "try type typedef typename undefined union unsafe unsigned use using var virtual void where while with yield").split(" "));
const kSqlWords = new Set(("add all alter and as asc between by case create cross delete desc distinct drop else end exists " +
  "foreign from full group having in index inner insert into is join key left like limit not null offset on or order outer " +
  "primary references right select set table then union unique update values view when where with").split(" "));

const kString = String.raw`"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'`;
const kNumber = String.raw`\b\d[\w.]*`;
const kWord = String.raw`[A-Za-z_][\w]*`;
const pattern = (comment, string = kString) => new RegExp(`(${comment})|(${string})|(${kNumber})|(${kWord})`, "g");
const kSlashes = pattern(String.raw`//[^\n]*|/\*[^]*?(?:\*/|$)`, kString + "|`(?:[^`\\\\]|\\\\.)*`");
const kHash = pattern(String.raw`#[^\n]*`, String.raw`"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|` + kString);
const kDashes = pattern(String.raw`--[^\n]*`);
const kMarkup = pattern(String.raw`<!--[^]*?(?:-->|$)`);

const kHashLanguages = /^(py|python\d?|sh|bash|zsh|shell|console|rb|ruby|yaml|yml|toml|r|perl|pl|make|makefile|cmake|dockerfile|conf|ini|elixir|nix)$/;
const kPlainLanguages = /^(|text|txt|plain|plaintext|markdown|md|output|log|csv)$/;

function patternOf(language) {
  if (kPlainLanguages.test(language)) return null;
  if (kHashLanguages.test(language)) return kHash;
  if (/^(sql|lua|haskell|hs|ada)$/.test(language)) return kDashes;
  if (/^(html|xml|svg|vue)$/.test(language)) return kMarkup;
  return kSlashes;
}

// The code as one fragment.
export function highlight(text, language) {
  const out = document.createDocumentFragment();
  const tokens = patternOf(language.toLowerCase());
  if (!tokens || text.length > kLongest) {
    out.append(text);
    return out;
  }
  const sql = language.toLowerCase() === "sql";
  let at = 0;
  for (const match of text.matchAll(tokens)) {
    const [whole, comment, string, number, word] = match;
    const known = word && (sql ? kSqlWords.has(word.toLowerCase()) : kWords.has(word));
    const kind = comment ? "comment" : string ? "string" : number ? "number" : known ? "keyword" : null;
    if (!kind) continue;
    out.append(text.slice(at, match.index), el("span", {class: kind}, whole));
    at = match.index + whole.length;
  }
  out.append(text.slice(at));
  return out;
}
