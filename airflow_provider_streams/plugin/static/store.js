// What the page knows: sources, their windows, their horizons. Polls quietly; asks again only for what has changed.

import { Problem, get, inTurn } from "./client.js";
import { Columns } from "./columns.js";
import { DAY, HOUR, iso } from "./words.js";

export const POLL_SECONDS = 10;
const SLOWEST_SECONDS = 120;
const HORIZON_SECONDS = 300;
const PENDING_SECONDS = 15;

const seconds = () => Date.now() / 1000;

/** A span around the view whose address stays the same for a while, so that an unchanged answer costs nothing. */
function around(view) {
  const grain = view.end - view.start > 3 * DAY ? DAY : HOUR;
  return { start: Math.floor(view.start / grain) * grain, end: Math.ceil(view.end / grain) * grain };
}

export class Store {
  constructor() {
    this.state = { phase: "loading", sources: [], tables: new Map(), horizons: new Map(), problem: null, updated: 0 };
    this.loaded = new Map();
    this.asked = new Map();
    this.listeners = new Set();
    this.view = null;
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

  look(view) {
    this.view = view;
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
    return !known || known.version !== source.version || view.start < known.start || view.end > known.end || (known.due && known.due <= seconds());
  }

  async fetch(source, view) {
    const wide = around(view);
    let body;
    try {
      body = await get(`timeline/${source.id}`, { start: iso(wide.start), end: iso(wide.end) });
    } catch (problem) {
      // gone meanwhile: the next poll leaves it out
      if (problem.status === 404) return;
      throw problem;
    }
    performance.mark("streams-columns");
    const columns = new Columns(body);
    performance.measure("streams-columns", "streams-columns");
    // what the list said may be older than this answer: ask again rather than miss a change
    this.loaded.set(source.id, { ...wide, version: body.version, due: body.due });
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
        if (answer.horizon !== (this.state.horizons.get(id)?.horizon ?? null) || answer.problem) {
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
