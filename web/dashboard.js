// The dashboard: figures of now, curves of the last minutes, totals since the start.

import {$, el} from "./dom.js";
import {formatBytes, formatCount, formatRate, formatSeconds, t} from "./i18n.js";
import {Graph} from "./graph.js";

const percent = (share) => `${formatRate(share * 100)} %`;
const whole = (n) => formatCount(Math.round(n * 10) / 10);
const kReasons = ["stop", "length", "abort", "timeout", "error"];

// words: key of the title; note(stats): the line below it; series as in graph.js with `words` for the legend.
const kCharts = [
  {words: "throughput", format: formatRate, series: [
    {key: "generated", words: "generated", colour: "--series-1", kind: "area"},
    {key: "prompts", words: "prompts", colour: "--series-2", kind: "line"}]},
  {words: "requests", format: whole, stacked: true, series: [
    {key: "running", words: "running", colour: "--series-1", kind: "area"},
    {key: "waiting", words: "waiting", colour: "--series-3", kind: "area"}]},
  {words: "ttft", format: formatSeconds, note: (stats) => since(stats.ttft_seconds), series: [
    {key: "ttft", words: "mean", colour: "--series-1", kind: "line"}]},
  {words: "itl", format: formatSeconds, note: (stats) => since(stats.inter_token_seconds), series: [
    {key: "interToken", words: "mean", colour: "--series-1", kind: "line"}]},
  {words: "kv", format: percent, top: 1,
    note: (stats) => t("blocks", {used: formatCount(stats.used_blocks), total: formatCount(stats.num_blocks)}), series: [
      {key: "used", words: "used", colour: "--series-1", kind: "area"},
      {key: "cached", words: "reusable", colour: "--series-2", kind: "line"}]},
  {words: "prefix", format: percent, top: 1, note: () => t("perAnswer"), series: [
    {key: "hits", words: "hits", colour: "--series-2", kind: "line"}]},
  {words: "batch", format: whole, stacked: true, note: () => t("batchNote"), series: [
    {key: "decode", words: "decode", colour: "--series-1", kind: "bar"},
    {key: "prefill", words: "prefill", colour: "--series-2", kind: "bar"}]},
];

function since(histogram) {
  if (!histogram.count) return "";
  return t("since", {p50: formatSeconds(histogram.p50), p99: formatSeconds(histogram.p99)});
}

class Chart {
  constructor(options) {
    this.options = options;
    this.values = new Map();  // series key -> where its value is written
    const canvas = el("canvas", {role: "img", "aria-label": t(options.words)});
    this.note = el("p", {class: "fine"});
    const legend = el("p", {class: "legend"}, ...options.series.map((series, i) => {
      const value = el("b");
      this.values.set(series.key, value);
      return el("span", {class: `key key-${series.colour.at(-1)}`}, t(series.words), " ", value);
    }));
    this.node = el("section", {class: "card"}, el("h2", {}, t(options.words)), legend, canvas, this.note);
    this.graph = new Graph(canvas, {
      ...options,
      now: () => t("now"),
      ago: (n) => t("ago", {n}),
      onPoint: (sample) => this.showValues(sample ?? this.latest),
    });
  }

  // Where nothing came in the last second, the value before it.
  newest(key) {
    return this.samples.findLast((sample) => sample[key] != null)?.[key];
  }

  showValues(sample) {
    for (const {key} of this.options.series) {
      const value = sample?.[key] ?? (sample === this.latest ? this.newest(key) : undefined);
      this.values.get(key).textContent = value == null ? "–" : this.options.format(value);
    }
  }

  show(samples, stats) {
    this.samples = samples;
    this.latest = samples.at(-1);
    this.graph.draw(samples);
    this.showValues(this.graph.pointed() ?? this.latest);
    this.note.textContent = (stats && this.options.note?.(stats)) || "\u00a0";
    const value = [...this.values.values()].map((node) => node.textContent).join(", ");
    this.graph.canvas.setAttribute("aria-label", t("chartLabel", {name: t(this.options.words), value}));
  }
}

// A bar of parts: [{words, bytes, used}] against the largest.
function memoryCard(memory) {
  const rows = memory.map(({words, bytes, of}) => el("div", {class: "meter"},
    el("span", {}, t(words)), el("span", {}, of ? `${formatBytes(bytes)} / ${formatBytes(of)}` : formatBytes(bytes)),
    el("progress", {max: of || Math.max(...memory.map((m) => m.of || m.bytes)), value: bytes, "aria-label": t(words)})));
  return el("section", {class: "card"}, el("h2", {}, t("memory")), ...rows);
}

// What /stats says about memory, as far as it does.
export function memoryOf(stats) {
  const memory = stats.memory ?? {};
  const rows = [];
  const kv = memory.kv_cache_bytes;
  if (memory.weight_bytes) rows.push({words: "weights", bytes: memory.weight_bytes});
  if (kv) rows.push({words: "kvUsed", bytes: stats.kv_usage * kv, of: kv});
  if (memory.resident_bytes) rows.push({words: "process", bytes: memory.resident_bytes});
  if (!rows.length && stats.num_blocks) return null;
  return rows.length ? rows : null;
}

function figure(words, value, unit = "") {
  return el("div", {class: "figure"}, el("span", {class: "fine"}, t(words)),
    el("span", {class: "value"}, value, unit && el("small", {}, ` ${unit}`)));
}

export class Dashboard {
  constructor(feed) {
    this.feed = feed;
    new ResizeObserver(() => this.draw()).observe($("charts"));
    this.build();
  }

  // In the language that holds now.
  build() {
    this.charts = kCharts.map((options) => new Chart(options));
    this.memory = el("div", {class: "slot"});
    $("charts").replaceChildren(...this.charts.map((chart) => chart.node), this.memory);
    this.draw();
  }

  draw() {
    if ($("dashboard").hidden) return;
    const {samples, stats, latest} = this.feed;
    $("figures").replaceChildren(
      figure("throughput", latest ? formatRate(latest.generated) : "–"),
      figure("running", stats ? formatCount(stats.running) : "–"),
      figure("waiting", stats ? formatCount(stats.waiting) : "–"),
      figure("kv", stats ? percent(stats.kv_usage) : "–"),
      figure("prefix", stats?.prefix_queries ? percent(stats.prefix_hits / stats.prefix_queries) : "–"));
    $("quiet").hidden = !stats || stats.requests > 0;
    for (const chart of this.charts) chart.show(samples, stats);
    const memory = stats && memoryOf(stats);
    this.memory.hidden = !memory;
    this.memory.replaceChildren(...(memory ? [memoryCard(memory)] : []));
    $("totals").replaceChildren(...(stats ? this.totals(stats) : []));
  }

  totals(stats) {
    const cell = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, formatCount(value)));
    const ends = kReasons.filter((reason) => stats.finished?.[reason]);
    return [el("dl", {},
      cell(t("requests"), stats.requests), cell(t("rejected"), stats.rejected),
      cell(t("promptTokens"), stats.prompt_tokens), cell(t("generatedTokens"), stats.generation_tokens),
      cell(t("steps"), stats.steps), cell(t("preemptions"), stats.preemptions),
      ...ends.map((reason) => cell(`${t("answers")}: ${t(`stop_reason_${reason}`)}`, stats.finished[reason])))];
  }
}
