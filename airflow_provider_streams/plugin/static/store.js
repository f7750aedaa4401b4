// What the page knows: sources, their windows, their horizons. Polls quietly; asks again only for what has changed.

import { Problem, get, inTurn } from "./client.js";
import { Columns } from "./columns.js";
import { DAY, HOUR, clamp, iso } from "./words.js";

export const POLL_SECONDS = 10;
const SLOWEST_SECONDS = 120;
const HORIZON_SECONDS = 300;
const PENDING_SECONDS = 15;

const seconds = () => Date.now() / 1000;

const WIDTHS = [250, 500, 1000, 2000, 4000, 8000];

/** A span around the view whose address stays the same for a while, so that an unchanged answer costs nothing. */
function around(view) {
  const length = view.end - view.start;
  const grain = [300, HOUR, DAY, 30 * DAY, 365 * DAY].findLast((one) => one <= length / 3) ?? 300;
  return clamp(Math.floor(view.start / grain) * grain, Math.ceil(view.end / grain) * grain, 1);
}

/** On how many pixels a span would be drawn, in steps: each other width would be another request. */
function pixels(wide, view, width) {
  const exact = (width * (wide.end - wide.start)) / (view.end - view.start);
  return WIDTHS.find((one) => one >= exact) ?? WIDTHS.at(-1);
}

export class Store {
  constructor() {
    this.state = { phase: "loading", sources: [], tables: new Map(), horizons: new Map(), problem: null, updated: 0 };
    this.loaded = new Map();
    this.asked = new Map();
    this.listeners = new Set();
    this.view = null;
    this.width = 0;
    this.wait = POLL_SECONDS;
    this.turn = 0;
  }

  subscribe = (listener) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  snapshot = () => this.state;

  set(change) {
    this.state = { ...this.state, ...change };
    for (const listener of this.listeners) listener();
  }

  /** Start polling; gives a function that ends it. */
  start() {
    const wake = () => {
      if (!document.hidden) this.refresh();
    };
    document.addEventListener("visibilitychange", wake);
    const next = async () => {
      if (!document.hidden) await this.refresh();
      this.timer = setTimeout(next, this.wait * 1000);
    };
    next();
    return () => {
      clearTimeout(this.timer);
      document.removeEventListener("visibilitychange", wake);
    };
  }

  look(view, width) {
    if (!width) return;
    this.view = view;
    this.width = width;
    clearTimeout(this.looking);
    this.looking = setTimeout(() => this.fill().catch((problem) => this.fail(problem)), 80);
  }

  async refresh() {
    try {
      const { sources } = await get("sources");
      const same = JSON.stringify(sources) === JSON.stringify(this.state.sources);
      this.wait = POLL_SECONDS;
      this.set({ phase: "ready", problem: null, updated: seconds(), ...(same ? {} : { sources }) });
      await this.fill();
    } catch (problem) {
      this.fail(problem);
    }
  }

  fail(problem) {
    if (!(problem instanceof Problem)) throw problem;
    this.wait = Math.min(SLOWEST_SECONDS, this.wait * 2);
    const phase = this.state.phase === "loading" || problem.status === 401 || problem.status === 403 ? "failed" : this.state.phase;
    this.set({ problem, phase });
  }

  /** Fetch the windows that are not known yet, or have changed. */
  async fill() {
    if (!this.view || this.state.phase !== "ready") return;
    const turn = ++this.turn;
    const view = this.view;
    const wanted = this.state.sources.filter((source) => this.isStale(source, view));
    await inTurn(wanted.map((source) => async () => {
      if (turn === this.turn) await this.fetch(source, view);
    }));
    if (turn === this.turn) this.reach();
  }

  isStale(source, view) {
    const known = this.loaded.get(source.id);
    if (!known || known.version !== source.version || view.start < known.start || view.end > known.end) return true;
    if (known.due && known.due <= seconds()) return true;
    if (known.exact) return false;
    // pieces that are much too coarse or too fine for this view
    const ratio = known.secondsPerPixel / ((view.end - view.start) / this.width);
    return ratio > 1.5 || ratio < 0.2;
  }

  async fetch(source, view) {
    const wide = around(view);
    const width = pixels(wide, view, this.width);
    let body;
    try {
      body = await get(`timeline/${source.id}`, { start: iso(wide.start), end: iso(wide.end), width });
    } catch (problem) {
      // gone meanwhile: the next poll leaves it out
      if (problem.status === 404) return;
      throw problem;
    }
    performance.mark("streams-columns");
    const columns = new Columns(body);
    performance.measure("streams-columns", "streams-columns");
    // what the list said may be older than this answer: ask again rather than miss a change
    this.loaded.set(source.id, { ...wide, version: body.version, due: body.due, exact: body.exact, secondsPerPixel: (wide.end - wide.start) / width });
    this.set({ tables: new Map(this.state.tables).set(source.id, columns) });
  }

  /** Ask for retention horizons, slowly, one system at a time. */
  async reach() {
    if (this.reaching) return;
    this.reaching = true;
    try {
      for (const { id } of this.state.sources) {
        if ((this.asked.get(id) ?? 0) > seconds()) continue;
        const answer = await get(`horizon/${id}`);
        this.asked.set(id, seconds() + (answer.pending ? PENDING_SECONDS : HORIZON_SECONDS));
        if (JSON.stringify(answer) !== JSON.stringify(this.state.horizons.get(id))) {
          this.set({ horizons: new Map(this.state.horizons).set(id, answer) });
        }
      }
    } catch (problem) {
      // the timeline stands without its horizon
      if (!(problem instanceof Problem)) throw problem;
    } finally {
      this.reaching = false;
    }
  }
}
