// The page: windows of every source on one axis. Airflow loads this file and renders `globalThis.Streams`.

import { DARK, LIGHT } from "./colors.js";
import { HEIGHT, Row } from "./lane.js";
import { swatch } from "./paint.js";
import { Backfill, Detail, Reader } from "./panel.js";
import { Store } from "./store.js";
import { install, isDark, watchTheme } from "./style.js";
import { DAY, HOUR, MEANING, STATES, clamp, clock, count, fromInput, h, plural, ticks, toInput } from "./words.js";

const { Component, Fragment, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, useSyncExternalStore } = globalThis.React;

const RANGES = [
  ["hour", "Hour", HOUR],
  ["day", "Day", DAY],
  ["week", "Week", 7 * DAY],
  ["month", "Month", 30 * DAY],
];
// a view shorter than that shows nothing more
const LEAST = 10;
// so many windows make a first view in which each can be aimed at
const FIRST_WINDOWS = 24;
const SNIPPET = `read = ReadWindowOperator(
    task_id="read",
    source=PulsarSource("shop/orders/events"),
    sink=ParquetSink("/lake/orders"),
)`;

const seconds = () => Date.now() / 1000;

function latest(length) {
  // whole minutes: a view that moves with every poll would be drawn again each time
  const end = Math.ceil(seconds() / 60) * 60;
  return { start: end - length, end: end + length * 0.02 };
}

function useTheme() {
  const [dark, setDark] = useState(isDark);
  useEffect(() => watchTheme(() => setDark(isDark())), []);
  return dark;
}

/** The range in which the windows of most sources can be told apart: a day, if that is not known. */
function firstRange(sources) {
  const lengths = sources.map((source) => source.window_seconds).filter(Boolean).sort((one, other) => one - other);
  if (!lengths.length) return "day";
  const wanted = lengths[lengths.length >> 1] * FIRST_WINDOWS;
  return (RANGES.find(([, , length]) => length >= wanted) ?? RANGES.at(-1))[0];
}

/** The last `length` seconds, moving with the clock, or a span that the user chose. */
function useView(sources) {
  const [chosen, setChosen] = useState(null);
  const [minute, setMinute] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setMinute(Math.ceil(seconds() / 60)), 5000);
    return () => clearInterval(timer);
  }, []);
  const first = useRef(null);
  // once only: a reader that appears later must not change what is looked at
  if (!first.current && sources.length) first.current = firstView(sources);
  const seen = chosen ?? first.current ?? { kind: "day" };
  const view = useMemo(() => {
    if (seen.span) return seen.span;
    return latest(seen.length ?? RANGES.find(([kind]) => kind === seen.kind)[2]);
  }, [seen.kind, seen.span, seen.length, seen.span ? 0 : minute]);
  const show = useCallback((start, end) => setChosen({ kind: "custom", span: clamp(start, end, LEAST) }), []);
  const follow = useCallback((length) => setChosen({ kind: RANGES.find(([, , one]) => one === length)?.[0] ?? "latest", length }), []);
  return { view, kind: seen.kind, follows: !seen.span, pick: (kind) => setChosen({ kind }), show, follow };
}

/** What is there to be seen: the last while, or if nothing was read in it, the time when something was. */
function firstView(sources) {
  const kind = firstRange(sources);
  const { start } = latest(RANGES.find(([name]) => name === kind)[2]);
  const last = Math.max(...sources.map((source) => source.last ?? -Infinity));
  if (last === -Infinity || last > start) return { kind };
  const first = Math.min(...sources.map((source) => source.first ?? Infinity));
  const length = RANGES.find(([name]) => name === kind)[2];
  const begin = Math.max(first, last - length);
  const room = (last - begin) * 0.05;
  return { kind: "custom", span: clamp(begin - room, last + room, LEAST) };
}

/** Half or twice as much around a moment that stays where it is: now, if it is in view, else the middle. */
function zoomed(view, factor) {
  const now = seconds();
  const at = now >= view.start && now <= view.end ? now : (view.start + view.end) / 2;
  return [at - (at - view.start) * factor, at + (view.end - at) * factor];
}

function useWidth() {
  const [width, setWidth] = useState(0);
  const observer = useRef(null);
  const ref = useCallback((element) => {
    observer.current?.disconnect();
    if (!element) return;
    setWidth(element.clientWidth);
    observer.current = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.current.observe(element);
  }, []);
  return [ref, width];
}

/** One tooltip for all lanes, moved without rendering anything else. */
function Tooltip({ handle }) {
  const [shown, setShown] = useState(null);
  const box = useRef(null);
  handle.current = { show: (x, lane, content) => setShown({ x, lane, content }), hide: () => setShown(null) };
  useLayoutEffect(() => {
    if (!shown || !box.current) return;
    const { offsetWidth, offsetHeight, style } = box.current;
    // never over the panel: reading there moves the mouse here
    const panel = document.querySelector(".st-panel")?.getBoundingClientRect();
    const right = (panel ? Math.min(panel.left, innerWidth) : innerWidth) - 8;
    style.visibility = right - offsetWidth < 0 ? "hidden" : "visible";
    const left = Math.min(Math.max(8, shown.x - offsetWidth / 2), right - offsetWidth);
    const below = shown.lane.bottom + 8;
    const top = below + offsetHeight < innerHeight ? below : shown.lane.top - offsetHeight - 8;
    style.left = `${left}px`;
    style.top = `${top}px`;
  }, [shown]);
  return shown && h("div", { ref: box, className: "st-tip", role: "tooltip" }, shown.content);
}

function Swatch({ state, palette }) {
  const canvas = useRef(null);
  useLayoutEffect(() => swatch(canvas.current, state, palette), [state, palette]);
  return h("canvas", { ref: canvas, "aria-hidden": true });
}

function Legend({ tally, palette, only, setOnly }) {
  return h(
    "div",
    { className: "st-legend", role: "group", "aria-label": "States of the windows shown" },
    STATES.map((state, at) =>
      h(
        "button",
        { key: state, type: "button", "aria-pressed": only === state, title: `${MEANING[state]}. Press to see only these.`, onClick: () => setOnly(only === state ? null : state) },
        h(Swatch, { state, palette }),
        h("span", null, state),
        h("b", { "data-count": state }, count(tally.counts[at])),
      ),
    ),
    h("span", { className: "st-legend-other", title: "A plan is pinned for the window, and it was not read yet" }, h("i", { className: "st-key-pin" }), `pinned, not read ${count(tally.planned)}`),
    tally.unproven > 0 && h("span", { className: "st-legend-other", title: "Read whole, but events may have been removed before the source was first observed" }, h("i", { className: "st-key-unproven" }), `unproven ${count(tally.unproven)}`),
    tally.undecodable > 0 && h("span", { className: "st-legend-other", title: "Some of their events could not be decoded, and are kept aside or left out" }, h("i", { className: "st-key-undecodable" }), `undecodable events ${count(tally.undecodable)}`),
    tally.overlaps > 0 && h("span", { className: "st-legend-other", title: "They share time with earlier windows of the same reader: those events are in the table twice" }, h("i", { className: "st-key-overlap" }), `overlapping ${count(tally.overlaps)}`),
    h("span", { className: "st-legend-other", title: "What is older the stream no longer holds" }, h("i", { className: "st-key-horizon" }), "beyond retention"),
    h("span", { className: "st-legend-other" }, h("i", { className: "st-key-now" }), "now"),
  );
}

/** A time of 24 hours, in UTC, whatever the browser's language. */
function Time({ name, value, take }) {
  const [text, setText] = useState(null);
  const at = text === null ? value : fromInput(text);
  const done = () => {
    if (text !== null && !Number.isNaN(at)) take(at);
    setText(null);
  };
  return h("input", {
    type: "text",
    className: "st-input st-time",
    placeholder: "2026-11-20 14:30",
    "aria-label": `${name} of the range, UTC, like 2026-11-20 14:30`,
    "aria-invalid": Number.isNaN(at),
    title: "UTC, like 2026-11-20 14:30",
    value: text ?? toInput(value),
    onChange: (event) => setText(event.target.value),
    onBlur: done,
    onKeyDown: (event) => {
      if (event.key === "Enter") done();
      if (event.key === "Escape") setText(null);
    },
  });
}

function Custom({ view, show }) {
  const length = view.end - view.start;
  return h(
    Fragment,
    null,
    h(Time, { name: "start", value: view.start, take: (at) => show(at, at < view.end ? view.end : at + length) }),
    h("span", { className: "st-muted" }, "to"),
    h(Time, { name: "end", value: view.end, take: (at) => show(at > view.start ? view.start : at - length, at) }),
  );
}

function Tools({ view, kind, follows, pick, show, follow, filter, setFilter }) {
  const zoom = (factor) => show(...zoomed(view, factor));
  const pan = (share) => {
    const by = (view.end - view.start) * share;
    show(view.start + by, view.end + by);
  };
  const button = (label, text, onClick) => h("button", { type: "button", className: "st-button st-icon", "aria-label": label, title: label, onClick }, text);
  return h(
    "div",
    { className: "st-tools" },
    h("input", { className: "st-input", type: "search", placeholder: "Filter sources", "aria-label": "Filter sources", value: filter, onChange: (event) => setFilter(event.target.value) }),
    h(
      "div",
      { className: "st-segments", role: "radiogroup", "aria-label": "Range" },
      RANGES.map(([name, label]) => h("button", { key: name, type: "button", role: "radio", "aria-checked": kind === name, onClick: () => pick(name) }, label)),
      h("button", { type: "button", role: "radio", "aria-checked": kind === "custom", onClick: () => show(view.start, view.end) }, "Custom"),
    ),
    kind === "custom" && h(Custom, { view, show }),
    h("div", { className: "st-joined" }, button("Earlier", "‹", () => pan(-0.5)), button("Zoom out", "−", () => zoom(2)), button("Zoom in", "+", () => zoom(0.5)), button("Later", "›", () => pan(0.5))),
    h("button", { type: "button", className: "st-button", "aria-pressed": follows, disabled: follows, title: "Go to now, and stay there", onClick: () => follow((view.end - view.start) / 1.02) }, "Latest"),
  );
}

function Axis({ lines, view, width, axis }) {
  return h(
    "div",
    { className: "st-axis" },
    h("div", { className: "st-axis-head" }, "Source"),
    h(
      "div",
      { className: "st-axis-ticks", ref: axis, role: "presentation" },
      lines.map(({ at, strong, label }) => {
        const left = ((at - view.start) / (view.end - view.start)) * width;
        return left > 18 && left < width - 18 && h("span", { key: at, className: strong ? "st-tick st-strong" : "st-tick", style: { left: `${left}px` } }, label);
      }),
    ),
    h("div", { className: "st-axis-head st-right" }, "Covered"),
    h("div", { className: "st-axis-head st-right", title: "Time since the end of the last covered window" }, "Lag"),
  );
}

function Empty({ filtered }) {
  if (filtered) return h("div", { className: "st-empty" }, h("h2", null, "No source matches"), h("p", { className: "st-muted" }, "Change the filter to see the others."));
  return h(
    "div",
    { className: "st-empty" },
    h("h2", null, "No windows yet"),
    h("p", { className: "st-muted" }, "The first window that a task plans or reads appears here by itself. Windows of DAGs that you may not read are not shown."),
    h("pre", null, SNIPPET),
  );
}

function Failed({ problem, retry }) {
  const login = problem.status === 401;
  return h(
    "div",
    { className: "st-empty", role: "alert" },
    h("h2", null, login ? "Signed out" : problem.status === 403 ? "Nothing you may see" : "The streams cannot be shown"),
    h("p", { className: "st-muted" }, problem.message),
    h("p", { style: { marginTop: "18px" } }, h("button", { type: "button", className: "st-button st-primary", onClick: login ? () => location.reload() : retry }, login ? "Sign in" : "Try again")),
  );
}

function Waiting() {
  return h(
    "div",
    { "aria-busy": true, "aria-label": "Loading" },
    [0, 1, 2, 3].map((at) => h("div", { key: at, className: "st-row" }, h("div", { className: "st-lines" }, h("i"), h("i")), h("div", { className: "st-lane", style: { height: `${HEIGHT}px` } }, h("div", { className: "st-skeleton" })), h("div"), h("div"))),
  );
}

function Status({ state, problem }) {
  const words = state.phase === "loading" ? "Loading" : `${plural(state.sources.length, "source")}, updated ${clock(Math.floor(state.updated))} UTC`;
  return h("div", { className: "st-status" }, h("i", { className: problem ? "st-live st-stale" : "st-live" }), words);
}

function inAll(tables, shown, view) {
  const sum = { counts: new Array(STATES.length).fill(0), planned: 0, overlaps: 0, unproven: 0, undecodable: 0 };
  for (const { id } of shown) {
    const one = tables.get(id)?.tally(view.start, view.end);
    if (!one) continue;
    one.counts.forEach((number, at) => (sum.counts[at] += number));
    for (const name of ["planned", "overlaps", "unproven", "undecodable"]) sum[name] += one[name];
  }
  return sum;
}

/** What the lanes may ask the page for; always the same object, so that lanes are not drawn again. */
function useActs(root, shown, view, show, setPanel) {
  const now = useRef({});
  now.current = { shown, view, show };
  return useMemo(() => {
    const lane = (id) => root.current?.querySelector(`.st-lane[data-source="${id}"]`);
    return {
      open: (id, window, enter = false) => setPanel({ kind: "window", id, window, enter, selected: { ...window, kind: "window" } }),
      // a selection grows while the lane keeps the focus; Enter goes on to its preview
      enter: () => root.current?.querySelector(".st-panel")?.focus(),
      select: (id, window) => setPanel({ kind: "span", id, window, selected: { ...window, kind: "span" } }),
      reader: (id) => setPanel({ kind: "reader", id, selected: null }),
      /** A piece and a little around it. */
      closer: (start, end) => now.current.show(start - (end - start) * 0.1, end + (end - start) * 0.1),
      close: () => setPanel(null),
      focus: (id, step) => {
        const ids = now.current.shown.map((source) => source.id);
        lane(ids[ids.indexOf(id) + step])?.focus();
      },
      reveal: (start, end) => {
        const { view: seen, show: move } = now.current;
        const length = seen.end - seen.start;
        if (start < seen.start) move(start - length * 0.1, start + length * 0.9);
        else if (end > seen.end) move(end - length * 0.9, end + length * 0.1);
      },
      lane,
    };
  }, []);
}

function Side({ panel, state, view, act, refresh }) {
  const source = panel && state.sources.find(({ id }) => id === panel.id);
  if (!source) return null;
  const close = () => {
    act.close();
    act.lane(panel.id)?.focus({ preventScroll: true });
  };
  const reach = state.horizons.get(source.id);
  const key = `${panel.kind} ${panel.id}`;
  if (panel.kind === "reader") return h(Reader, { key, source, view, reach, close, refresh });
  const { start, end } = panel.window;
  if (panel.kind === "span") return h(Backfill, { key, source, window: panel.window, close });
  const columns = state.tables.get(source.id);
  let at = columns ? columns.from(start) : -1;
  while (columns && at < columns.size && columns.start[at] === start && columns.end[at] !== end) at += 1;
  const one = columns && at < columns.size && columns.start[at] === start ? columns.describe(at) : null;
  return h(Detail, { source, window: panel.window, enter: panel.enter, one, horizon: reach?.horizon, close });
}

function Streams() {
  const [store] = useState(() => new Store());
  const state = useSyncExternalStore(store.subscribe, store.snapshot);
  const { view, kind, follows, pick, show, follow } = useView(state.sources);
  const [filter, setFilter] = useState("");
  const [only, setOnly] = useState(null);
  const [panel, setPanel] = useState(null);
  const [axis, width] = useWidth();
  const root = useRef(null);
  const handle = useRef(null);
  const tip = useMemo(() => ({ show: (...all) => handle.current?.show(...all), hide: () => handle.current?.hide() }), []);
  const dark = useTheme();
  const palette = dark ? DARK : LIGHT;
  useEffect(() => store.start(), [store]);
  useEffect(() => store.look(view, width), [store, view, width]);
  const lines = useMemo(() => ticks(view, width), [view, width]);
  const needle = filter.trim().toLowerCase();
  const shown = useMemo(() => state.sources.filter(({ key, reader }) => `${key} ${reader}`.toLowerCase().includes(needle)), [state.sources, needle]);
  const tally = useMemo(() => inAll(state.tables, shown, view), [state.tables, shown, view]);
  const act = useActs(root, shown, view, show, setPanel);
  // whole minutes are enough for lags, and keep unchanged rows from being drawn
  const now = Math.floor((state.updated || seconds()) / 60) * 60;

  const zoomKeys = (event) => {
    if (event.target.tagName === "INPUT" || event.ctrlKey || event.metaKey) return;
    const factor = { "+": 0.5, "=": 0.5, "-": 2 }[event.key];
    if (!factor) return;
    show(...zoomed(view, factor));
  };

  const rows = shown.map((source) =>
    h(Row, {
      key: source.id,
      source,
      columns: state.tables.get(source.id),
      view,
      width,
      palette,
      horizon: state.horizons.get(source.id)?.horizon,
      held: isHeld(state.horizons.get(source.id), source),
      now,
      only,
      lines,
      selected: panel?.id === source.id ? panel.selected : null,
      act,
      tip,
    }),
  );
  const body = {
    loading: () => h(Waiting),
    failed: () => h(Failed, { problem: state.problem, retry: () => store.refresh() }),
    ready: () => (shown.length ? rows : h(Empty, { filtered: needle !== "" && state.sources.length > 0 })),
  }[state.phase]();
  return h(
    "div",
    { ref: root, className: dark ? "st-page st-dark" : "st-page", "data-phase": state.phase, onKeyDown: zoomKeys },
    h("div", { className: "st-head" }, h("div", { className: "st-head-words" }, h("h1", null, "Stream coverage"), h(Status, { state, problem: state.problem })), h(Tools, { view, kind, follows, pick, show, follow, filter, setFilter })),
    h(Legend, { tally, palette, only, setOnly }),
    state.problem && state.phase === "ready" && h("div", { className: "st-banner", role: "status" }, h("span", null, `${state.problem.message} What you see is from ${clock(Math.floor(state.updated))} UTC.`), h("button", { type: "button", className: "st-button", onClick: () => store.refresh() }, "Try now")),
    h(
      "div",
      { className: "st-main" },
      h("div", { className: "st-table" }, h(Axis, { lines, view, width, axis }), body, shown.length > 0 && state.phase === "ready" && h(Hint)),
      h(Side, { panel, state, view, act, refresh: () => store.refresh() }),
    ),
    h(Tooltip, { handle }),
  );
}

const isHeld = (reach, source) => Boolean(reach?.holds?.some(({ reader }) => reader === source.reader));

/** The page shows its errors, and the user may leave them; Airflow around it goes on. */
class Guard extends Component {
  state = { error: null };

  static getDerivedStateFromError(error) {
    return { error };
  }

  render() {
    if (!this.state.error) return h(Streams);
    return h(
      "div",
      { className: isDark() ? "st-page st-dark" : "st-page", "data-phase": "broken" },
      h(Failed, { problem: { message: `The page met an error of its own: ${this.state.error.message}` }, retry: () => this.setState({ error: null }) }),
    );
  }
}

function Hint() {
  const key = (name) => h("kbd", null, name);
  return h("p", { className: "st-hint" }, "Click a window for its run and receipt; drag over several to preview a backfill. By keyboard: ", key("←"), " ", key("→"), " move, ", key("Shift"), " selects, ", key("Enter"), " opens, ", key("n"), " ", key("p"), " next and previous problem, ", key("+"), " ", key("−"), " zoom. All times are UTC.");
}

install();
globalThis.Streams = Guard;
