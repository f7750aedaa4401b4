// One reader's windows as typed arrays, ordered by start, and questions about them. No objects per window. Where they are
// many, several of one state that start close together are one piece.

import { STATES } from "./words.js";

// of several windows under one pixel the gravest is meant
const GRAVITY = STATES.map((state) => ["covered", "running", "missing", "failed", "lost"].indexOf(state));

export class Columns {
  constructor(body) {
    const size = body.start.length;
    this.size = size;
    this.start = new Float64Array(size);
    this.end = new Float64Array(size);
    this.state = Uint8Array.from(body.state);
    this.windows = body.windows;
    this.planned = body.planned;
    this.overlaps = body.overlaps;
    this.unproven = body.unproven;
    this.quarantined = body.quarantined;
    this.dropped = body.dropped;
    this.undecodable = body.undecodable;
    this.exact = body.exact;
    this.grid = body.window_schedule;
    this.rows = body.rows;
    this.bytes = body.bytes;
    this.late = body.late;
    this.attempts = body.attempts;
    this.cause = body.cause;
    this.causes = body.causes;
    this.fingerprint = body.fingerprint;
    this.due = body.due;
    for (let i = 0; i < size; i += 1) {
      this.start[i] = body.zero + body.start[i];
      this.end[i] = this.start[i] + body.length[i];
    }
    this.longest = this.end.reduce((most, end, i) => Math.max(most, end - this.start[i]), 0);
    this.share();
  }

  /** Windows that overlap earlier ones go to a layer of their own. */
  share() {
    this.layer = new Uint8Array(this.size);
    const ends = [];
    for (let i = 0; i < this.size; i += 1) {
      let at = ends.findIndex((end) => end <= this.start[i]);
      if (at < 0) at = Math.min(ends.length, 3);
      this.layer[i] = at;
      ends[at] = Math.max(ends[at] ?? -Infinity, this.end[i]);
    }
    this.layers = Math.max(1, ends.length);
  }

  /** The first window that starts at or after a time. */
  from(seconds) {
    let low = 0;
    let high = this.size;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.start[middle] < seconds) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The first window that may touch a time: an earlier one has ended. */
  touching(seconds) {
    return this.from(seconds - this.longest);
  }

  /** The gravest window within `reach` seconds of a time, -1 if there is none; `layer` -1 means any. */
  at(seconds, reach = 0, layer = -1) {
    let found = -1;
    for (let i = this.touching(seconds - reach); i < this.size && this.start[i] <= seconds + reach; i += 1) {
      if (this.end[i] <= seconds - reach || (layer >= 0 && this.layer[i] !== layer)) continue;
      if (found < 0 || GRAVITY[this.state[i]] > GRAVITY[this.state[found]]) found = i;
    }
    return found;
  }

  /** The last piece that touches `[start, end)`; -1 if there is none. */
  last(start, end) {
    for (let i = this.from(end) - 1; i >= 0 && this.start[i] > start - this.longest; i -= 1) {
      if (this.end[i] > start) return i;
    }
    return -1;
  }

  /** Windows by state in `[start, end)`, as an array by index of state, and what is to be said of them besides. */
  tally(start, end, whole = false) {
    const counts = new Array(STATES.length).fill(0);
    let planned = 0;
    let overlaps = 0;
    let unproven = 0;
    let undecodable = 0;
    for (let i = this.touching(start); i < this.size && this.start[i] < end; i += 1) {
      if (this.end[i] <= start || (whole && (this.start[i] < start || this.end[i] > end))) continue;
      counts[this.state[i]] += this.windows[i];
      planned += this.planned[i];
      overlaps += this.overlaps[i];
      unproven += this.unproven[i];
      undecodable += this.undecodable[i];
    }
    return { counts, planned, overlaps, unproven, undecodable, all: counts.reduce((sum, one) => sum + one, 0) };
  }

  /** The nearest window to `i` whose state is a problem; -1 if there is none. */
  problem(i, step) {
    for (let at = i + step; at >= 0 && at < this.size; at += step) {
      if (STATES[this.state[at]] !== "covered" && STATES[this.state[at]] !== "running") return at;
    }
    return -1;
  }

  /** A span widened to whole cells of the reader's window schedule; where that is not known here, to whole windows. */
  snap(start, end) {
    const { every, shift, edges } = this.grid ?? {};
    if (every) {
      return { start: Math.floor((start - shift) / every) * every + shift, end: Math.ceil((end - shift) / every) * every + shift };
    }
    if (edges?.length && start >= edges[0] && end <= edges.at(-1)) {
      return { start: edges.findLast((edge) => edge <= start), end: edges.find((edge) => edge >= end) };
    }
    let from = start;
    let to = end;
    for (let i = this.touching(start); i < this.size && this.start[i] < end; i += 1) {
      if (this.end[i] <= start) continue;
      from = Math.min(from, this.start[i]);
      to = Math.max(to, this.end[i]);
    }
    return { start: from, end: to };
  }

  describe(i) {
    return {
      start: this.start[i],
      end: this.end[i],
      state: STATES[this.state[i]],
      windows: this.windows[i],
      rows: this.rows[i],
      bytes: this.bytes[i],
      late: this.late[i],
      attempts: this.attempts[i],
      cause: this.causes[this.cause[i]],
      fingerprint: this.fingerprint[i],
      planned: this.planned[i] > 0,
      overlaps: this.overlaps[i],
      unproven: this.unproven[i],
      quarantined: this.quarantined[i],
      dropped: this.dropped[i],
    };
  }
}
