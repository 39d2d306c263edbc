// Draws the curves of the dashboard on a canvas. Time runs to the right; the newest sample is at the right edge.

const kWindows = [60, 180];  // seconds shown: the first that holds what there is, else the last
const kPad = {right: 10, top: 10, bottom: 20};  // pixels; on the left as wide as the words of the axis

// A round number at or above the largest value, and the lines between: {top, lines}.
export function niceScale(largest) {
  if (!(largest > 0)) return {top: 1, lines: [0, 0.5, 1]};
  const power = 10 ** Math.floor(Math.log10(largest));
  const top = [1, 2, 2.5, 5, 10].map((m) => m * power).find((m) => m >= largest * 0.999);
  return {top, lines: [0, top / 2, top]};
}

export class Graph {
  // series: [{key, colour (a CSS variable), kind: "line" | "area" | "bar"}]; stacked: values are added up;
  // top: fixed upper end; format(value) for the axis; ago(minutes), now: words of the axis.
  constructor(canvas, options) {
    this.canvas = canvas;
    this.options = options;
    this.samples = [];
    this.pointer = null;  // x in pixels
    this.left = 0;        // pixels before the curves
    canvas.addEventListener("pointermove", (event) => this.point(event.offsetX));
    canvas.addEventListener("pointerleave", () => this.point(null));
  }

  point(x) {
    this.pointer = x;
    this.draw(this.samples);
    this.options.onPoint?.(this.pointed());
  }

  // The sample under the pointer, or undefined.
  pointed() {
    if (this.pointer === null || !this.samples.length) return undefined;
    const time = this.timeAt(this.pointer);
    const near = this.samples.reduce((a, b) => (Math.abs(b.time - time) < Math.abs(a.time - time) ? b : a));
    return Math.abs(near.time - time) < 3000 ? near : undefined;
  }

  get width() { return this.canvas.clientWidth - this.left - kPad.right; }
  get height() { return this.canvas.clientHeight - kPad.top - kPad.bottom; }
  timeAt(x) { return this.end - (1 - (x - this.left) / this.width) * this.window * 1000; }
  x(time) { return this.left + (1 - (this.end - time) / (this.window * 1000)) * this.width; }
  y(value) { return kPad.top + (1 - Math.min(value / this.top, 1)) * this.height; }

  // Stacked, a series stands on those before it and is not drawn where it adds nothing.
  valueOf(sample, key, index, below) {
    const value = sample[key] ?? null;
    if (!this.options.stacked || value === null) return value;
    return value === 0 && index > 0 ? null : value + below;
  }

  total(sample) {
    const values = this.options.series.map(({key}) => sample[key] ?? 0);
    return this.options.stacked ? values.reduce((a, b) => a + b, 0) : Math.max(...values);
  }

  draw(samples) {
    const {canvas, options} = this;
    if (!canvas.clientWidth) return;  // not on the screen
    const ratio = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth * ratio, canvas.clientHeight * ratio].map(Math.round);
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, {width, height});
    this.end = samples.at(-1)?.time ?? 0;
    const age = (this.end - (samples[0]?.time ?? 0)) / 1000;
    this.window = kWindows.find((seconds) => age < seconds) ?? kWindows.at(-1);
    this.samples = samples.filter(({time}) => time >= this.end - this.window * 1000);
    this.scale = niceScale(options.top ?? Math.max(0, ...this.samples.map((s) => this.total(s))));
    this.top = this.scale.top;
    this.style = getComputedStyle(canvas);
    const pen = this.pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    pen.font = `11px ${this.style.fontFamily}`;
    this.left = 10 + Math.max(...this.scale.lines.map((value) => pen.measureText(options.format(value)).width));
    this.drawAxes();
    let below = this.samples.map(() => 0);
    for (const [index, series] of options.series.entries()) {
      const values = this.samples.map((s, i) => this.valueOf(s, series.key, index, below[i]));
      this.drawSeries(series, values, below);
      below = options.stacked ? values.map((v, i) => v ?? below[i]) : below;
    }
    this.drawPointer();
  }

  // A colour of the style sheet as it holds now, light or dark.
  colour(name) {
    this.canvas.style.color = `var(${name})`;
    return this.style.color;
  }

  drawAxes() {
    const {pen, options} = this;
    pen.fillStyle = this.colour("--muted");
    pen.strokeStyle = this.colour("--line");
    pen.lineWidth = 1;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    for (const value of this.scale.lines) {
      const y = Math.round(this.y(value)) + 0.5;
      pen.beginPath();
      pen.moveTo(this.left, y);
      pen.lineTo(this.left + this.width, y);
      pen.stroke();
      pen.fillText(options.format(value), this.left - 7, y);
    }
    pen.textBaseline = "alphabetic";
    const bottom = this.canvas.clientHeight - 5;
    pen.fillText(options.now(), this.left + this.width, bottom);
    for (let minutes = this.window / 60; minutes >= 1; --minutes) {
      const x = this.left + (1 - (minutes * 60) / this.window) * this.width;
      pen.textAlign = x === this.left ? "left" : "center";
      pen.fillText(options.ago(minutes), x, bottom);
    }
  }

  drawSeries({kind, colour}, values, below) {
    const {pen} = this;
    pen.strokeStyle = pen.fillStyle = this.colour(colour);
    pen.lineWidth = 1.75;
    pen.lineJoin = pen.lineCap = "round";
    if (kind === "bar") {
      const wide = Math.max(1, (this.width / this.window) * 0.7);
      values.forEach((value, i) => {
        if (value === null || value === below[i]) return;
        const [y, base] = [this.y(value), this.y(below[i])];
        pen.fillRect(this.x(this.samples[i].time) - wide, y, wide, base - y);
      });
      return;
    }
    for (const run of this.runs(values)) this.drawRun(run, values, below, kind);
  }

  // Indices that are joined by a line: nulls are passed over, a pause of polling parts.
  runs(values) {
    const runs = [];
    let last = null;
    this.samples.forEach((sample, i) => {
      if (values[i] === null) return;
      if (last === null || sample.time - this.samples[last].time > 10_000) runs.push([]);
      runs.at(-1).push(i);
      last = i;
    });
    return runs;
  }

  drawRun(run, values, below, kind) {
    const {pen} = this;
    const at = (i) => [this.x(this.samples[i].time), this.y(values[i])];
    if (run.length === 1) {
      pen.beginPath();
      pen.arc(...at(run[0]), 2, 0, 2 * Math.PI);
      pen.fill();
      return;
    }
    pen.beginPath();
    for (const i of run) pen.lineTo(...at(i));
    pen.stroke();
    if (kind !== "area") return;
    for (const i of run.toReversed()) pen.lineTo(this.x(this.samples[i].time), this.y(below[i]));
    pen.globalAlpha = 0.16;
    pen.fill();
    pen.globalAlpha = 1;
  }

  drawPointer() {
    const sample = this.pointed();
    if (!sample) return;
    const {pen} = this;
    const x = Math.round(this.x(sample.time)) + 0.5;
    pen.strokeStyle = this.colour("--muted");
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(x, kPad.top);
    pen.lineTo(x, kPad.top + this.height);
    pen.stroke();
  }
}
