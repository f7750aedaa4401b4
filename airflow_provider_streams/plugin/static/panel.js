// What stands beside the timeline: one window with its runs and receipts, or a selected span with its backfill.

import { get } from "./client.js";
import { count, duration, h, iso, moment, plural, short, size, span } from "./words.js";

const { useEffect, useRef, useState } = globalThis.React;

const SELECTS = [
  ["missing", "Missing", "Windows that nobody covered: missing or failed. Lost ones are left out."],
  ["failed", "Failed", "Windows whose last try failed."],
  ["lost", "Lost", "Windows that the stream no longer holds whole: reads what is left, and records the loss."],
  ["late", "Late", "Covered windows of which rows appeared after they were read."],
  ["all", "All", "Every window that nobody is reading, covered ones too."],
];
const CHAINED = "Windows of this reader begin where the one before ended, or are places that somebody chose: clear their task runs to read them again.";
const COUNTED = ["rows", "bytes", "entries", "filtered", "duplicates", "quarantined"];

/** Asks once per question, drops answers to earlier ones, and asks again when `version` changes. */
function useAnswer(path, parameters, version, delay = 0) {
  const question = JSON.stringify([path, parameters]);
  const [answer, setAnswer] = useState({ question: null, body: null, problem: null });
  useEffect(() => {
    const control = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const body = await get(path, parameters, control.signal);
        setAnswer({ question, body, problem: null });
      } catch (problem) {
        if (problem.name !== "AbortError") setAnswer({ question, body: null, problem });
      }
    }, delay);
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, [question, version]);
  return answer.question === question ? answer : { body: null, problem: null };
}

function Frame({ title, subtitle, enter, close, children }) {
  const frame = useRef(null);
  useEffect(() => {
    if (enter) frame.current.focus();
  }, [enter, title]);
  return h(
    "aside",
    {
      ref: frame,
      className: "st-panel",
      tabIndex: -1,
      "aria-label": title,
      onKeyDown: (event) => {
        if (event.key === "Escape") close();
      },
    },
    h(
      "header",
      { className: "st-panel-head" },
      h("div", null, h("h2", null, title), h("div", { className: "st-muted st-ellipsis" }, subtitle)),
      h("button", { type: "button", className: "st-button st-icon", onClick: close, "aria-label": "Close" }, "✕"),
    ),
    h("div", { className: "st-panel-body" }, children),
  );
}

function Facts({ rows }) {
  return h(
    "dl",
    { className: "st-facts" },
    rows
      .filter(([, value]) => value !== null && value !== undefined && value !== "")
      .map(([name, value]) => h("div", { key: name }, h("dt", null, name), h("dd", null, value))),
  );
}

function Waiting({ problem }) {
  return problem
    ? h("p", { className: "st-note st-note-bad", role: "alert" }, problem.message)
    : h("div", { className: "st-lines", "aria-label": "Loading" }, h("i"), h("i"), h("i"));
}

function RunLink({ run }) {
  const one = encodeURIComponent;
  const mapped = run.map_index >= 0 ? `/mapped/${run.map_index}` : "";
  const path = `/dags/${one(run.dag_id)}/runs/${one(run.run_id)}/tasks/${one(run.task_id)}${mapped}`;
  const { Link } = globalThis.ReactRouterDOM ?? {};
  const label = `${run.dag_id} · ${run.task_id}`;
  // Airflow's own link changes the page without loading it again
  if (Link) return h(Link, { to: path, className: "st-link" }, label);
  return h("a", { href: new URL(path.slice(1), document.baseURI).href, className: "st-link" }, label);
}

function Receipt({ run }) {
  if (!run.totals) return null;
  const rest = Object.entries(run.totals).filter(([name, number]) => number && !COUNTED.includes(name));
  return h(Facts, {
    rows: [
      ["Rows", count(run.totals.rows)],
      ["Bytes", size(run.totals.bytes)],
      ["Stored units", count(run.totals.entries)],
      ["Filtered", run.totals.filtered ? count(run.totals.filtered) : null],
      ["Duplicates dropped", run.totals.duplicates ? count(run.totals.duplicates) : null],
      ["Quarantined", run.totals.quarantined ? count(run.totals.quarantined) : null],
      ...rest.map(([name, number]) => [`Explained: ${name}`, count(number)]),
      ["Verdict", run.verdict],
      ["Read in", duration(run.seconds)],
    ],
  });
}

function Run({ run }) {
  const took = run.started && run.finished ? (Date.parse(run.finished) - Date.parse(run.started)) / 1000 : null;
  return h(
    "li",
    { className: "st-run" },
    h(
      "div",
      { className: "st-run-head" },
      h("span", { className: `st-badge st-badge-${run.state}` }, run.state),
      h(RunLink, { run }),
    ),
    h("div", { className: "st-muted st-mono st-break" }, run.run_id),
    h(
      "div",
      { className: "st-muted" },
      `try ${run.try_number}`,
      run.started && `, started ${moment(Date.parse(run.started) / 1000)} UTC`,
      took !== null && `, took ${duration(took)}`,
    ),
    run.error_type && h("pre", { className: "st-error" }, h("b", null, run.error_type), `\n${run.error_message}`),
    h(Receipt, { run }),
  );
}

function Plan({ plan }) {
  if (!plan) return h("p", { className: "st-note" }, "No plan is pinned: it was never planned, or planning failed.");
  if (plan.problem) return h("p", { className: "st-note st-note-bad" }, plan.problem);
  return h(Facts, {
    rows: [
      ["Fingerprint", h("span", { className: "st-mono st-break" }, plan.fingerprint)],
      ["Basis", plan.basis],
      ["Planned", `${moment(plan.observed_at)} UTC`],
      ["Generation", plan.generation > 1 ? `${plan.generation} (planned again)` : null],
      ["Shards, splits", `${count(plan.shards)}, ${count(plan.splits)}`],
      ["To read", size(plan.bytes) + (plan.events === null ? "" : `, ${plural(plan.events, "event")}`)],
      ["Accepted losses", plan.losses ? count(plan.losses) : null],
    ],
  });
}

/** One window. */
export function Detail({ source, window: chosen, enter, one, horizon, close }) {
  const parameters = { start: iso(chosen.start), end: iso(chosen.end) };
  const { body, problem } = useAnswer(`window/${source.id}`, parameters, source.version);
  const gone = horizon && chosen.start < horizon;
  return h(
    Frame,
    { title: span(chosen.start, chosen.end), subtitle: `${source.title} · ${source.reader}`, enter, close },
    one &&
      h(
        "div",
        { className: "st-lead" },
        h("span", { className: `st-badge st-badge-${one.state}` }, one.state),
        one.state === "covered" && h("span", null, `${plural(one.rows, "row")}, ${size(one.bytes)}`),
      ),
    one?.late > 0 && h("p", { className: "st-note" }, `${plural(one.late, "row")} appeared after the window was read.`),
    one?.cause && one.state !== "failed" && h("p", { className: "st-note" }, one.cause),
    gone &&
      one?.state !== "covered" &&
      h("p", { className: "st-note st-note-bad" }, `The stream holds nothing older than ${moment(horizon)} UTC: this window can no longer be read completely.`),
    !body && h(Waiting, { problem }),
    body && h("h3", null, body.runs.length ? plural(body.runs.length, "run") : "No run yet"),
    body && body.runs.length > 0 && h("ol", { className: "st-runs" }, body.runs.map((run) => h(Run, { key: run.id, run }))),
    body && h("h3", null, "Pinned plan"),
    body && h(Plan, { plan: body.plan }),
  );
}

function Command({ text }) {
  const [copied, setCopied] = useState(false);
  const area = useRef(null);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // without https there is no clipboard; a selected text can be copied by hand
      globalThis.getSelection()?.selectAllChildren(area.current);
      return;
    }
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  };
  return h(
    "div",
    { className: "st-command" },
    h("code", { ref: area, tabIndex: 0, "aria-label": "Command" }, text),
    h("button", { type: "button", className: "st-button st-primary", onClick: copy }, copied ? "Copied" : "Copy command"),
    h("p", { className: "st-muted st-small" }, "Nothing is started from this page. The command shows exactly what would be read; to read it, put ", h("code", null, "--path"), " and the folder of the table in place of ", h("code", null, "--dry-run"), "."),
  );
}

/** A selected span: what a backfill of it would read. */
export function Backfill({ source, window: chosen, close }) {
  const [select, setSelect] = useState("missing");
  const parameters = { start: iso(chosen.start), end: iso(chosen.end), select };
  const { body, problem } = useAnswer(`preview/${source.id}`, parameters, source.version, 120);
  return h(
    Frame,
    { title: "Backfill preview", subtitle: `${source.title} · ${source.reader}`, close },
    h("p", { className: "st-lead" }, span(chosen.start, chosen.end), h("span", { className: "st-muted" }, ` ${duration(chosen.end - chosen.start)}`)),
    h(
      "div",
      { className: "st-segments", role: "radiogroup", "aria-label": "Which windows" },
      SELECTS.map(([name, label, meaning]) =>
        h("button", { key: name, type: "button", role: "radio", "aria-checked": select === name, title: meaning, onClick: () => setSelect(name) }, label),
      ),
    ),
    h("p", { className: "st-muted st-small" }, SELECTS.find(([name]) => name === select)[2]),
    !body && h(Waiting, { problem }),
    body && body.windows === 0 && h("p", { className: "st-note" }, "Nothing to do: no window in this span is in that state."),
    body && body.windows > 0 && h(Estimate, { body, chosen }),
    body && body.windows > 0 && (body.command ? h(Command, { text: body.command }) : h("p", { className: "st-note" }, CHAINED)),
  );
}

function Estimate({ body }) {
  const states = Object.entries(body.counts);
  return h(
    "div",
    null,
    h(
      "div",
      { className: "st-big" },
      h("div", null, h("b", null, count(body.windows)), h("span", null, body.windows === 1 ? "window" : "windows")),
      h("div", null, h("b", null, body.rows === null ? "?" : `~${short(body.rows)}`), h("span", null, "rows")),
      h("div", null, h("b", null, body.bytes === null ? "?" : `~${size(body.bytes)}`), h("span", null, "to read")),
    ),
    h("div", { className: "st-chips" }, states.map(([state, number]) => h("span", { key: state, className: `st-badge st-badge-${state}` }, `${count(number)} ${state}`))),
    body.rows === null && h("p", { className: "st-note" }, "No covered window is near: how much these hold is not known."),
    body.beyond_horizon > 0 &&
      h("p", { className: "st-note st-note-bad" }, `${plural(body.beyond_horizon, "window")} of them ${body.beyond_horizon === 1 ? "starts" : "start"} before the retention horizon: the stream holds only a part of them, or nothing.`),
    body.beyond_horizon === null && h("p", { className: "st-note" }, "How far back the stream reaches is not known here. The command asks it before it reads."),
  );
}

