// The panel of a conversation's settings: system prompt and sampling. A slider that was not touched sends nothing, so
// that the model's own default holds.

import {$, el, iconButton} from "./dom.js";
import {t} from "./i18n.js";

// start: where the slider stands while nothing is set.
const kSliders = [
  {name: "temperature", words: "temperature", min: 0, max: 2, step: 0.05, start: 1},
  {name: "top_p", words: "topP", min: 0.05, max: 1, step: 0.05, start: 1},
  {name: "top_k", words: "topK", min: 0, max: 200, step: 1, start: 0},
  {name: "max_tokens", words: "maxTokens", min: 16, max: 2048, step: 16, start: 2048},
  {name: "repetition_penalty", words: "repetition", min: 0.8, max: 1.6, step: 0.01, start: 1},
];

export class Settings {
  // onChange(sampling), onSystem(text)
  constructor({onChange, onSystem}) {
    this.onChange = onChange;
    this.maxTokens = 2048;
    this.sampling = {};
    $("system").addEventListener("input", () => onSystem($("system").value));
    this.build();
  }

  // In the language that holds now.
  build() {
    $("sliders").replaceChildren(...kSliders.map((slider) => this.row(slider)));
  }

  limit(maxModelLen) {
    this.maxTokens = Math.max(16, maxModelLen);
    this.build();
  }

  show(conversation) {
    this.sampling = {...conversation.sampling};
    $("system").value = conversation.system;
    this.build();
  }

  row({name, words, min, max, step, start}) {
    const top = name === "max_tokens" ? this.maxTokens : max;
    const rest = name === "max_tokens" ? this.maxTokens : start;
    const id = `sampling-${name}`;
    const number = el("input", {type: "number", id, min, max: top, step: "any", inputmode: "decimal", placeholder: t("byModel")});
    const range = el("input", {type: "range", min, max: top, step, "aria-label": t("slider", {name: t(words)})});
    const reset = iconButton("back", t("reset"), () => set(undefined));
    const show = () => {
      const value = this.sampling[name];
      number.value = value ?? "";
      range.value = value ?? rest;
      range.classList.toggle("untouched", value === undefined);
      reset.disabled = value === undefined;
    };
    const set = (value) => {
      this.sampling[name] = value;  // undefined leaves no trace in JSON
      show();
      this.onChange({...this.sampling});
    };
    range.addEventListener("input", () => set(Number(range.value)));
    number.addEventListener("change", () => {
      const whole = step >= 1 ? Math.round(Number(number.value)) : Number(number.value);
      const lowest = name === "max_tokens" ? 1 : min;
      set(number.value === "" || !Number.isFinite(whole) ? undefined : Math.min(top, Math.max(lowest, whole)));
    });
    show();
    return el("div", {class: "slider"},
      el("div", {class: "slider-head"}, el("label", {for: id}, t(words)), number, reset),
      range, el("p", {class: "fine"}, t(`${words}Help`)));
  }
}
