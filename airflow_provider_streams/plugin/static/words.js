// How values become words. Times are seconds since 1970; everything is shown in UTC.

export const h = globalThis.React.createElement;

export const STATES = ["covered", "running", "lost", "failed", "missing"];

export const MEANING = {
  covered: "read, and its receipt agrees with its plan",
  running: "a task is reading it, or was killed while it did",
  lost: "the stream no longer holds what it needs",
  failed: "the last try ended with an error",
  missing: "no task has read it yet",
};

export const LETTER = { covered: "", running: "R", lost: "L", failed: "F", missing: "M" };

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const UNITS = [
  [86400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];

export const HOUR = 3600;
export const DAY = 86400;

const two = (number) => String(number).padStart(2, "0");

export const count = (number) => Math.round(number).toLocaleString("en-US");

/** An estimate: three digits say all that is known. */
export function short(number) {
  const grain = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, number))) - 2);
  return count(Math.round(number / grain) * grain);
}

export function plural(number, word) {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}

/** Events that are no rows. */
export function undecodableWords({ quarantined, dropped }) {
  const parts = [[quarantined, "quarantined"], [dropped, "dropped"]].filter(([number]) => number);
  return `${parts.map(([number, word]) => `${plural(number, "event")} ${word}`).join(", ")}: could not be decoded`;
}

export function size(bytes) {
  const names = ["B", "kB", "MB", "GB", "TB", "PB"];
  let at = 0;
  let value = bytes;
  while (value >= 1000 && at < names.length - 1) {
    value /= 1000;
    at += 1;
  }
  return `${value >= 100 || at === 0 ? Math.round(value) : value.toFixed(1)} ${names[at]}`;
}

/** The two greatest units: `1 d 4 h`, `12 min`. */
export function duration(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  let rest = Math.round(seconds);
  const parts = [];
  for (const [unit, name] of UNITS) {
    const whole = Math.floor(rest / unit);
    if (whole > 0) parts.push(`${whole} ${name}`);
    else if (parts.length) break;
    rest -= whole * unit;
    if (parts.length === 2) break;
  }
  return parts.join(" ") || "0 s";
}

export function day(seconds, year = false) {
  const date = new Date(seconds * 1000);
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}${year ? ` ${date.getUTCFullYear()}` : ""}`;
}

export function clock(seconds) {
  const date = new Date(seconds * 1000);
  const exact = date.getUTCSeconds() ? `:${two(date.getUTCSeconds())}` : "";
  return `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}${exact}`;
}

export const moment = (seconds) => `${day(seconds, true)}, ${clock(seconds)}`;

export function span(start, end) {
  const to = day(start) === day(end) ? clock(end) : `${day(end)}, ${clock(end)}`;
  return `${day(start)}, ${clock(start)} – ${to} UTC`;
}

/** ISO 8601 with microseconds where there are any: windows are found by their exact times. */
export function iso(seconds) {
  const micros = Math.round(seconds * 1e6);
  const rest = ((micros % 1e6) + 1e6) % 1e6;
  const whole = new Date((micros - rest) / 1000).toISOString().slice(0, 19);
  return rest ? `${whole}.${String(rest).padStart(6, "0")}Z` : `${whole}Z`;
}

/** For a field of text: a browser's own would show 12 hours where its language does. */
export const toInput = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ");

/** `2026-11-20 14:30`, in UTC; NaN if it is none. */
export function fromInput(text) {
  const parts = /^\s*(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d))?\s*Z?\s*$/.exec(text);
  if (!parts) return Number.NaN;
  const at = Date.parse(`${parts[1]}-${parts[2]}-${parts[3]}T${parts[4] ?? "00"}:${parts[5] ?? "00"}Z`) / 1000;
  return within(at) ? at : Number.NaN;
}

const FIRST = Date.parse("0001-01-02T00:00Z") / 1000;
const LAST = Date.parse("9999-12-30T00:00Z") / 1000;

/** Whether the server can express a time as well. */
const within = (seconds) => seconds >= FIRST && seconds <= LAST;

/** A view that can be asked for and drawn. */
export function clamp(start, end, least) {
  const from = Math.min(Math.max(start, FIRST), LAST - least);
  return { start: from, end: Math.min(Math.max(end, from + least), LAST) };
}

const STEPS = [1, 5, 15, 30, 60, 300, 900, 1800, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 4 * DAY, 7 * DAY, 14 * DAY, 28 * DAY, 91 * DAY, 364 * DAY, 3640 * DAY, 36400 * DAY, 364000 * DAY];

/** Round times inside the view, far enough apart to be labelled. */
export function ticks(view, width, apart = 76) {
  const least = ((view.end - view.start) / Math.max(width, 1)) * apart;
  const step = STEPS.find((one) => one >= least) ?? STEPS.at(-1);
  const found = [];
  for (let at = Math.ceil(view.start / step) * step; at < view.end; at += step) {
    const midnight = at % DAY === 0;
    found.push({ at, strong: midnight && step < DAY, label: midnight ? day(at) : clock(at) });
  }
  return found;
}
