// Polls /stats once a second and turns counters into what happened in that second. Keeps the last minutes.

import {explain, getJson} from "./api.js";

const kPeriod = 1000;  // ms
const kKept = 600;     // samples

// What a histogram gained between two snapshots: its mean over that time, or null where nothing came.
function meanBetween(before, after) {
  const count = after.count - before.count;
  if (!(count > 0)) return null;
  return Math.max(0, (after.mean * after.count - before.mean * before.count) / count);
}

export function sampleBetween(before, after, seconds) {
  const rate = (name) => Math.max(0, after[name] - before[name]) / seconds;
  const queries = after.prefix_queries - before.prefix_queries;
  const moved = after.steps > before.steps;
  return {
    generated: rate("generation_tokens"),
    prompts: rate("prompt_tokens"),
    ttft: meanBetween(before.ttft_seconds, after.ttft_seconds),
    interToken: meanBetween(before.inter_token_seconds, after.inter_token_seconds),
    step: meanBetween(before.step_seconds, after.step_seconds),
    running: after.running,
    waiting: after.waiting,
    used: after.kv_usage,
    cached: after.num_blocks ? after.cached_blocks / after.num_blocks : 0,
    hits: queries > 0 ? (after.prefix_hits - before.prefix_hits) / queries : null,
    decode: moved ? after.step_decode_tokens : 0,
    prefill: moved ? after.step_prefill_tokens : 0,
  };
}

export class Feed {
  // onSample() after each poll; onTrouble(text or null) where the server's state changes; askForKey as in chat.js.
  constructor({onSample, onTrouble, askForKey}) {
    Object.assign(this, {onSample, onTrouble, askForKey});
    this.samples = [];  // oldest first; each has `time` in ms
    this.stats = null;  // the newest answer of /stats
    this.time = 0;
    this.off = false;
  }

  start() {
    const turn = async () => {
      if (!document.hidden && !this.off) await this.poll();
      setTimeout(turn, kPeriod);
    };
    turn();
  }

  async poll() {
    try {
      this.take(await getJson("stats"), performance.now());
      this.onTrouble(null);
    } catch (error) {
      this.stats = null;
      if (error.status === 401) this.off = !(await this.askForKey());
      else if (error.status === 404) this.off = true;  // a server without statistics
      else this.onTrouble(explain(error), error);
    }
    this.onSample();
  }

  take(stats, time) {
    const before = this.stats;
    this.stats = stats;
    const gap = (time - this.time) / 1000;
    this.time = time;
    // After a pause or a restart of the server there is nothing to compare with.
    if (!before || gap > 5 || stats.steps < before.steps || stats.requests < before.requests) return;
    this.samples.push({time, ...sampleBetween(before, stats, Math.max(gap, 0.1))});
    if (this.samples.length > kKept) this.samples.shift();
  }

  get latest() { return this.stats ? this.samples.at(-1) : undefined; }
}
