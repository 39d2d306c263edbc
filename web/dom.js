// Small helpers over the DOM: elements, icons. Text goes in as text, never as HTML.

const kSvg = "http://www.w3.org/2000/svg";

// 24 x 24, drawn as strokes.
const kIcons = {
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6L6 18",
  menu: "M4 7h16M4 12h16M4 17h10",
  chat: "M5 5h14a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2h-8l-5 4v-4H5a2 2 0 0 1-2-2V7a2 2 0 0 1 2-2z",
  pulse: "M3 12h4l3-8 4 16 3-8h4",
  sliders: "M4 8h9M19 8h1M4 16h1M11 16h9M16 5.500v5M8 13.500v5",
  up: "M12 19V5M6 11l6-6 6 6",
  down: "M12 5v14M6 13l6 6 6-6",
  stop: "M8 8h8v8H8z",
  copy: "M9 9h10v10H9zM5 15V5h10",
  check: "M5 13l4 4L19 7",
  again: "M4 12a8 8 0 1 1 2.5 5.800M4 19v-5h5",
  edit: "M4 20l1-4L16 5l3 3L8 19zM14 7l3 3",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10.5 11v5M13.5 11v5",
  save: "M12 4v11M7 11l5 5 5-5M5 20h14",
  on: "M6 5l7 7-7 7M13 5l7 7-7 7",
  back: "M9 7L4 12l5 5M4 12h11a5 5 0 0 1 0 10",
};

export const $ = (id) => document.getElementById(id);

export function icon(name) {
  const svg = document.createElementNS(kSvg, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(kSvg, "path");
  path.setAttribute("d", kIcons[name]);
  svg.append(path);
  return svg;
}

// el("button", {class: "plain", onclick: f, "aria-label": "Copy"}, child, "text", ...): on... are listeners,
// everything else an attribute; false and null leave an attribute out.
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

export function iconButton(name, label, onclick) {
  return el("button", {type: "button", class: "plain", "aria-label": label, title: label, onclick}, icon(name));
}

// Copies and says so on the button for a moment. The clipboard API needs a secure context; on plain HTTP from
// another machine a selection in a text area does it.
export async function copyText(text, button, label, done) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el("textarea", {class: "unseen", readonly: true});
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    button.focus();
  }
  const show = (name, words) => {
    button.querySelector(".icon").replaceWith(icon(name));
    button.setAttribute("aria-label", words);
    button.title = words;
  };
  show("check", done);
  setTimeout(() => show("copy", label), 1500);
}

export function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], {type}));
  el("a", {href: url, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
