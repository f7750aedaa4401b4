// One reader of one source: its name, its windows, what they come to. Drag or shift+arrows select, click or Enter opens.

import { band, lane as paint } from "./paint.js";
import { STATES, clock, count, day, duration, h, moment, plural, size, span, undecodableWords } from "./words.js";

const { memo, useCallback, useEffect, useLayoutEffect, useRef } = globalThis.React;

export const HEIGHT = 46;
const DRAG = 5;

/** What the tooltip and the screen reader say about a window. */
export function sentence(one) {
  const read = one.state === "covered" ? `, ${plural(one.rows, "row")}` : "";
  const cause = one.cause ? `, ${one.cause}` : "";
  const several = one.windows > 1 ? `, ${plural(one.windows, "window")}` : "";
  const overlap = one.overlaps ? `, ${overlapWords(one)}` : "";
  const aside = one.quarantined || one.dropped ? `, ${undecodableWords(one)}` : "";
  return `${span(one.start, one.end)}${several}, ${one.state}${read}${aside}${cause}${overlap}`;
}

/** Events of the time that windows share are in the table twice. */
export const overlapWords = ({ windows, overlaps }) => (windows > 1 ? `${plural(overlaps, "window")} overlap earlier ones` : "overlaps an earlier window");

export function tallyWords({ counts, all }) {
  const named = STATES.map((state, at) => [state, counts[at]]).filter(([, number]) => number > 0);
  return all ? `${plural(all, "window")}: ${named.map(([state, number]) => `${count(number)} ${state}`).join(", ")}` : "no windows";
}

function Tip({ one }) {
  return h(
    "div",
    null,
    h("div", { className: "st-tip-title" }, span(one.start, one.end)),
    h(
      "div",
      { className: "st-tip-state" },
      h("i", { className: `st-dot st-${one.state}` }),
      one.windows > 1 ? `${plural(one.windows, "window")}, ${one.state}` : one.state,
      one.windows === 1 && one.attempts > 1 && h("span", { className: "st-muted" }, ` after ${one.attempts} tries`),
    ),
    one.state === "covered" && h("div", null, `${count(one.rows)} rows, ${size(one.bytes)}`),
    one.late > 0 && h("div", null, `${plural(one.late, "row")} appeared later`),
    (one.quarantined > 0 || one.dropped > 0) && h("div", null, undecodableWords(one)),
    one.cause && h("div", { className: "st-tip-cause" }, one.cause),
    one.overlaps > 0 && h("div", { className: "st-late" }, overlapWords(one)),
    one.unproven > 0 && h("div", null, "Unproven: events may have been removed before the source was first observed."),
    one.planned && h("div", null, "A plan is pinned; it was not read yet."),
    one.windows > 1 && h("div", { className: "st-muted" }, "Click to look closer."),
    one.fingerprint && h("div", { className: "st-mono st-muted" }, `plan ${one.fingerprint}`),
  );
}

function Timeline({ source, columns, view, width, palette, horizon, now, only, lines, selected, act, tip }) {
  const canvas = useRef(null);
  const box = useRef(null);
  const mark = useRef(null);
  const drag = useRef(null);
  const cursor = useRef(-1);
  const anchor = useRef(-1);

  useLayoutEffect(() => {
    if (!width || !canvas.current) return;
    performance.mark("streams-paint");
    paint(canvas.current, { columns, view, width, height: HEIGHT, palette, horizon, now, only, lines });
    performance.measure("streams-paint", "streams-paint");
  }, [columns, view, width, palette, horizon, now, only, lines]);

  const perSecond = width / (view.end - view.start);
  const x = (seconds) => (seconds - view.start) * perSecond;
  const seconds = (event) => view.start + (event.clientX - box.current.getBoundingClientRect().left) / perSecond;

  const outline = useCallback(
    (start, end, kind) => {
      const style = mark.current.style;
      style.display = "block";
      mark.current.className = `st-mark st-mark-${kind}`;
      const left = Math.max(0, (start - view.start) * perSecond);
      const right = Math.min(width, (end - view.start) * perSecond);
      style.left = `${left - 1}px`;
      style.width = `${Math.max(3, right - left + 2)}px`;
    },
    [view, perSecond, width],
  );

  const under = (event) => {
    if (!columns) return -1;
    const y = event.clientY - box.current.getBoundingClientRect().top;
    for (let layer = 0; layer < columns.layers; layer += 1) {
      const { top, height } = band(layer, columns.layers, HEIGHT);
      if (y >= top - 1 && y <= top + height + 1) {
        const exact = columns.at(seconds(event), 0, layer);
        const narrow = exact < 0 || (columns.end[exact] - columns.start[exact]) * perSecond < 4;
        return narrow ? columns.at(seconds(event), 2 / perSecond, layer) : exact;
      }
    }
    return columns.at(seconds(event));
  };

  const leave = () => {
    tip.hide();
    if (drag.current || !mark.current) return;
    if (cursor.current >= 0 && box.current.matches(":focus-visible")) outline(columns.start[cursor.current], columns.end[cursor.current], "one");
    else mark.current.style.display = "none";
  };

  const move = (event) => {
    const began = drag.current;
    if (began && Math.abs(event.clientX - began.x) > DRAG) began.moved = true;
    if (began?.moved) {
      const at = seconds(event);
      const wide = columns.snap(Math.min(began.at, at), Math.max(began.at, at));
      began.span = wide;
      outline(wide.start, wide.end, "span");
      tip.show(event.clientX, box.current.getBoundingClientRect(), h("div", null, h("div", { className: "st-tip-title" }, span(wide.start, wide.end)), tallyWords(columns.tally(wide.start, wide.end, true))));
      return;
    }
    const i = under(event);
    if (i < 0) {
      leave();
      return;
    }
    outline(columns.start[i], columns.end[i], "one");
    tip.show(event.clientX, box.current.getBoundingClientRect(), h(Tip, { one: columns.describe(i) }));
  };

  const down = (event) => {
    if (event.button !== 0 || !columns) return;
    box.current.setPointerCapture(event.pointerId);
    drag.current = { x: event.clientX, at: seconds(event), moved: false, span: null };
  };

  const up = (event) => {
    const began = drag.current;
    drag.current = null;
    if (!began) return;
    if (began.moved && began.span) {
      tip.hide();
      cursor.current = anchor.current = -1;
      mark.current.style.display = "none";
      act.select(source.id, began.span);
      return;
    }
    const i = under(event);
    if (i >= 0) {
      cursor.current = anchor.current = i;
      open(i, false);
    }
  };

  /** Shows a window; of several in one piece, that piece larger. */
  const open = (i, enter) => {
    const [start, end] = [columns.start[i], columns.end[i]];
    if (columns.windows[i] > 1) act.closer(start, end);
    else act.open(source.id, { start, end }, enter);
  };

  /** Moves the cursor, says where it is, and scrolls it into view. */
  const go = (i, extend) => {
    if (!columns?.size || i < 0) {
      nothing();
      return;
    }
    const to = Math.max(0, Math.min(columns.size - 1, i));
    cursor.current = to;
    if (!extend) anchor.current = to;
    act.reveal(columns.start[to], columns.end[to]);
    box.current.setAttribute("aria-valuenow", String(to + 1));
    if (extend && anchor.current >= 0) {
      const first = Math.min(anchor.current, to);
      const last = Math.max(anchor.current, to);
      const wide = { start: columns.start[first], end: Math.max(columns.end[last], columns.end[first]) };
      outline(wide.start, wide.end, "span");
      box.current.setAttribute("aria-valuetext", `selected ${span(wide.start, wide.end)}, ${tallyWords(columns.tally(wide.start, wide.end, true))}`);
      act.select(source.id, wide);
      return;
    }
    const one = columns.describe(to);
    outline(one.start, one.end, "one");
    box.current.setAttribute("aria-valuetext", sentence(one));
    const rect = box.current.getBoundingClientRect();
    const middle = Math.max(0, Math.min(width, x((one.start + one.end) / 2)));
    tip.show(rect.left + middle, rect, h(Tip, { one }));
  };

  const start = () => {
    if (cursor.current >= 0) return cursor.current;
    return columns ? columns.last(view.start, view.end) : -1;
  };

  /** Nothing is in view: say so, and stay. */
  const nothing = () => box.current.setAttribute("aria-valuetext", `no windows between ${span(view.start, view.end)}`);

  const keys = {
    ArrowLeft: (event) => go(cursor.current < 0 ? start() : Math.max(0, cursor.current - 1), event.shiftKey),
    ArrowRight: (event) => go(cursor.current < 0 ? start() : cursor.current + 1, event.shiftKey),
    PageUp: (event) => go(start() < 0 ? -1 : Math.max(0, start() - 24), event.shiftKey),
    PageDown: (event) => go(start() < 0 ? -1 : start() + 24, event.shiftKey),
    Home: (event) => go(0, event.shiftKey),
    End: (event) => go(columns.size - 1, event.shiftKey),
    n: () => step(1),
    p: () => step(-1),
    ArrowUp: () => act.focus(source.id, -1),
    ArrowDown: () => act.focus(source.id, 1),
    Enter: () => {
      const i = start();
      tip.hide();
      if (i >= 0 && anchor.current >= 0 && anchor.current !== i) act.enter();
      else if (i >= 0) open(i, true);
      else nothing();
    },
    Escape: () => {
      tip.hide();
      act.close();
    },
  };

  const step = (by) => {
    const found = columns.problem(cursor.current < 0 ? (by > 0 ? -1 : columns.size) : cursor.current, by);
    if (found >= 0) go(found, false);
  };

  const key = (event) => {
    const action = keys[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey || (!columns && event.key !== "Escape")) return;
    event.preventDefault();
    action(event);
  };

  const focus = () => {
    // a click has focused it already, and shows its own mark
    const i = start();
    if (box.current.matches(":focus-visible") && i >= 0 && !drag.current) go(i, false);
  };

  const blur = () => {
    tip.hide();
    mark.current.style.display = "none";
  };

  useEffect(() => {
    // after zooming or new data the mark would stand elsewhere
    cursor.current = Math.min(cursor.current, (columns?.size ?? 0) - 1);
    if (mark.current && cursor.current >= 0 && box.current.matches(":focus-visible")) outline(columns.start[cursor.current], columns.end[cursor.current], "one");
    else if (mark.current) mark.current.style.display = "none";
  }, [columns, outline]);

  // several windows are tinted, a single one is only framed
  const whole = selected?.kind === "span";
  const chosen = selected && selected.end > view.start && selected.start < view.end && {
    left: `${Math.max(0, x(selected.start)) - 1}px`,
    width: `${Math.max(3, Math.min(width, x(selected.end)) - Math.max(0, x(selected.start)) + 2)}px`,
  };
  return h(
    "div",
    {
      ref: box,
      className: "st-lane",
      style: { height: `${HEIGHT}px` },
      tabIndex: 0,
      role: "slider",
      "data-source": source.id,
      "data-windows": columns?.size ?? "",
      "aria-label": `Windows of ${source.title}, reader ${source.reader}. Arrow keys move, Shift and arrows select, Enter opens, n and p go to the next and previous problem.`,
      "aria-valuemin": 1,
      "aria-valuemax": Math.max(1, columns?.size ?? 1),
      "aria-valuenow": 1,
      "aria-valuetext": columns ? tallyWords(columns.tally(view.start, view.end)) : "loading",
      onPointerMove: move,
      onPointerLeave: leave,
      onPointerDown: down,
      onPointerUp: up,
      onPointerCancel: () => {
        drag.current = null;
        leave();
      },
      onKeyDown: key,
      onFocus: focus,
      onBlur: blur,
    },
    !columns && h("div", { className: "st-skeleton" }),
    h("canvas", { ref: canvas, "aria-hidden": true }),
    chosen && h("div", { className: `st-mark st-mark-chosen${whole ? " st-mark-span" : ""}`, style: { ...chosen, display: "block" } }),
    h("div", { ref: mark, className: "st-mark", style: { display: "none" } }),
  );
}

function Name({ source, held, act }) {
  const at = source.title.lastIndexOf("/") + 1;
  return h(
    "button",
    { type: "button", className: "st-name", "aria-label": `${source.title}, reader ${source.reader}: its table and holds`, title: `${source.key}\nreader ${source.reader}\nPress for its table, holds, and to forget it.`, onClick: () => act.reader(source.id) },
    h(
      "div",
      { className: "st-name-title" },
      h("span", { className: "st-name-path" }, source.title.slice(0, at)),
      h("span", { className: "st-name-end" }, source.title.slice(at)),
    ),
    h(
      "div",
      { className: "st-name-reader" },
      h("span", { className: `st-system st-system-${source.system}` }, source.system),
      h("span", { className: "st-ellipsis" }, source.reader),
      held && h("span", { className: "st-held", title: "A hold keeps unread data of this reader from retention" }, "held"),
    ),
  );
}

function Covered({ tally }) {
  if (!tally.all) return h("div", { className: "st-cell" }, h("span", { className: "st-muted" }, "–"));
  const covered = tally.counts[0];
  const share = covered / tally.all;
  // never round a gap away
  const percent = covered === tally.all ? "100" : Math.min(99.9, share * 100).toFixed(1);
  const lost = tally.counts[2];
  const failed = tally.counts[3];
  const missing = tally.counts[4];
  const worst = [[lost, "lost"], [failed, "failed"], [missing, "missing"], [tally.overlaps, "overlapping"]].filter(([number]) => number);
  return h(
    "div",
    { className: "st-cell", title: tallyWords(tally) },
    h("div", { className: "st-figure" }, `${percent} %`),
    h(
      "div",
      { className: "st-under" },
      worst.length ? worst.map(([number, state]) => h("span", { key: state, className: "st-problem", title: `${count(number)} ${state}` }, h("i", { className: `st-dot st-${state}` }), count(number))) : plural(tally.all, "window"),
    ),
  );
}

function Lag({ source, now }) {
  if (!source.covered_end) return h("div", { className: "st-cell" }, h("span", { className: "st-muted" }, "never"), h("div", { className: "st-under" }, "covered"));
  const lag = Math.max(0, now - source.covered_end);
  const late = source.window_seconds && lag > 2.5 * source.window_seconds;
  return h(
    "div",
    { className: "st-cell", title: `covered up to ${moment(source.covered_end)} UTC` },
    h("div", { className: late ? "st-figure st-late" : "st-figure" }, duration(lag)),
    h("div", { className: "st-under" }, source.running ? h("span", { className: "st-problem" }, h("i", { className: "st-dot st-running" }), `${source.running} running`) : `to ${day(source.covered_end)}, ${clock(source.covered_end)}`),
  );
}

/** A row of the table. */
export const Row = memo(function Row(props) {
  const { source, columns, view, now } = props;
  const tally = columns ? columns.tally(view.start, view.end) : { counts: [0, 0, 0, 0, 0], overlaps: 0, all: 0 };
  return h(
    "div",
    { className: "st-row", role: "group", "aria-label": `${source.title}, ${source.reader}` },
    h(Name, { source, held: props.held, act: props.act }),
    h(Timeline, props),
    h(Covered, { tally }),
    h(Lag, { source, now }),
  );
});
