// What is next to the timeline: one window with its runs and receipts, or a selected span with its backfill.

import { airflows, get, ours, post } from "./client.js";
import { count, duration, h, iso, moment, plural, short, size, span, undecodableWords } from "./words.js";

const { useEffect, useRef, useState } = globalThis.React;

const SELECTS = [
  ["missing", "Missing", "Windows that are not covered: missing or failed. Lost ones are left out."],
  ["failed", "Failed", "Windows whose last try failed."],
  ["lost", "Lost", "Windows that the stream no longer holds whole: reads what is left, and records the loss."],
  ["late", "Late", "Covered windows of which rows appeared after they were read."],
  ["all", "All", "Every window that no task is reading, also covered ones."],
];
const COUNTED = ["rows", "bytes", "entries", "filtered", "duplicates", "quarantined", "dropped", "other_type"];

const PREVIEWS = ["The command shows exactly what would be read. To read it, leave ", h("code", null, "--dry-run"), " out: many windows in one Spark job, into the same table."];
const LOOKS = ["Run it where the table is mounted. ", h("code", null, "quarantine replay"), " decodes these events again after a fix."];

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
  return h(PageLink, { path, label: `${run.dag_id} · ${run.task_id}` });
}

/** A page of Airflow's. */
function PageLink({ path, label }) {
  const { Link } = globalThis.ReactRouterDOM ?? {};
  // Airflow's own link changes the page without loading it again
  if (Link) return h(Link, { to: path, className: "st-link" }, label);
  return h("a", { href: airflows(path.slice(1)).href, className: "st-link" }, label);
}

/** Where a reader's rows go, and what becomes of them on the way. */
function landingFacts(body) {
  return [
    ["Table", body.table ? h("span", { className: "st-mono st-break" }, body.table) : body.landings ? "none: read and proven only" : null],
    ["Transform", body.transform && h("span", { className: "st-mono st-break" }, body.transform)],
    ["Columns", body.columns?.join(", ")],
    ["Windows", body.window_schedule],
    ["Basis", body.basis],
  ];
}

function Receipt({ run }) {
  if (!run.totals) return null;
  const rest = Object.entries(run.totals).filter(([name, number]) => number && !COUNTED.includes(name));
  return h(Facts, {
    rows: [
      ["Rows", [null, undefined, run.totals.rows].includes(run.written) ? count(run.totals.rows) : `${count(run.totals.rows)} read, ${count(run.written)} landed`],
      ["Bytes", size(run.totals.bytes)],
      ["Stored units", count(run.totals.entries)],
      ["Filtered", run.totals.filtered ? count(run.totals.filtered) : null],
      ["Duplicates dropped", run.totals.duplicates ? count(run.totals.duplicates) : null],
      ["Quarantined", run.totals.quarantined ? count(run.totals.quarantined) : null],
      ["Of another type", run.totals.other_type ? count(run.totals.other_type) : null],
      ["Dropped", run.totals.dropped ? `${count(run.totals.dropped)}, which could not be decoded` : null],
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
      ["Unproven shards", plan.unproven ? `${count(plan.unproven)}: events may have been removed before the source was first observed` : null],
      ["Notes", plan.remarks.length ? plan.remarks.map((remark) => h("div", { key: remark }, remark)) : null],
      ["Counts", plan.void ? "no more: a later window of its chain took its place" : null],
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
    (one?.quarantined > 0 || one?.dropped > 0) && h("p", { className: "st-note" }, `${undecodableWords(one)}.${one.quarantined ? " They lie beside the window's rows, with their causes." : ""}`),
    body?.look && h(Command, { text: body.look, about: LOOKS }),
    one?.overlaps > 0 && h("p", { className: "st-note st-note-bad" }, "It shares time with an earlier window: the events of that time are in the table twice. Read one of them again with overlap=\"replace\"."),
    one?.cause && one.state !== "failed" && h("p", { className: "st-note" }, one.cause),
    gone &&
      one?.state !== "covered" &&
      h("p", { className: "st-note st-note-bad" }, `The stream holds nothing older than ${moment(horizon)} UTC: this window can no longer be read completely.`),
    !body && h(Waiting, { problem }),
    body && h("h3", null, body.runs.length ? plural(body.runs.length, "run") : "No run yet"),
    body && body.runs.length > 0 && h("ol", { className: "st-runs" }, body.runs.map((run) => h(Run, { key: run.id, run }))),
    body && h("h3", null, "Pinned plan"),
    body && h(Plan, { plan: body.plan }),
    body && h("h3", null, "Lands in"),
    body && h(Facts, { rows: landingFacts(body) }),
    h(Table, { source, window: chosen }),
  );
}

function Command({ text, about = PREVIEWS }) {
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
    h("p", { className: "st-muted st-small" }, ...about),
  );
}

/** How the table stands, as the api-server sees it, and which covered windows are no longer in it. */
function Table({ source, window: chosen }) {
  const { body } = useAnswer(`table/${source.id}`, { start: iso(chosen.start), end: iso(chosen.end) }, source.version, 120);
  if (!body || body.status === null || (body.status === "ours" && !body.gone.length)) return null;
  const first = body.gone[0];
  return h(
    "p",
    { className: body.status === "unseen" ? "st-note" : "st-note st-note-bad" },
    `Seen from Airflow's api-server: ${body.cause || "the table is there"}.`,
    first && ` ${plural(body.gone.length, "window")} here that ${body.gone.length === 1 ? "was" : "were"} covered ${body.gone.length === 1 ? "is" : "are"} no longer in it, the first from ${moment(Date.parse(first.start) / 1000)} UTC: the next read or backfill there finds them missing.`,
  );
}

/** A selected span: what a backfill of it would read. */
export function Backfill({ source, window: chosen, close }) {
  const [select, setSelect] = useState("missing");
  const parameters = { start: iso(chosen.start), end: iso(chosen.end), select };
  const { body, problem } = useAnswer(`preview/${source.id}`, parameters, source.version, 120);
  // the server knows the reader's window schedule best
  const wide = body ? { start: Date.parse(body.start) / 1000, end: Date.parse(body.end) / 1000 } : chosen;
  return h(
    Frame,
    { title: "Backfill preview", subtitle: `${source.title} · ${source.reader}`, close },
    h("p", { className: "st-lead" }, span(wide.start, wide.end), h("span", { className: "st-muted" }, ` ${duration(wide.end - wide.start)}`)),
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
    body && body.windows > 0 && h(Estimate, { body }),
    body && body.windows > 0 && body.action && h(Start, { key: JSON.stringify(body.action.body), action: body.action }),
    body && body.windows > 0 && body.hint && h("p", { className: "st-note" }, body.hint),
    body && body.windows > 0 && body.command && h(Command, { text: body.command }),
    body && h("h3", null, "Lands in"),
    body && h(Facts, { rows: landingFacts(body) }),
    h(Table, { source, window: wide }),
  );
}

/** What Airflow will do, in words. */
function actionWords({ kind, dag_id, runs, again, left, is_paused }) {
  const what = kind === "dag_run" ? `One run of ${dag_id} reads them, many in one Spark job.` : `Airflow's backfill starts ${plural(runs, "run")} of ${dag_id}, with all of its tasks.`;
  return [
    what,
    again ? `${plural(again, "run")} of these ${again === 1 ? "is of a window" : "are of windows"} that you did not choose.` : "",
    left ? `${plural(left, "window")} ${left === 1 ? "is" : "are"} left: not on the DAG's schedule, or with a run at work or ended well.` : "",
    is_paused ? "The DAG is paused: nothing runs until it is not." : "",
  ].filter(Boolean).join(" ");
}

/** Starts it over Airflow's own API, as the user who is signed in; asks first. */
function Start({ action }) {
  const [phase, setPhase] = useState("idle");
  const [problem, setProblem] = useState(null);
  const start = async () => {
    setPhase("sent");
    setProblem(null);
    try {
      await post(airflows(action.path), action.body);
      setPhase("started");
    } catch (error) {
      setProblem(error);
      setPhase("idle");
    }
  };
  const button = (label, className, onClick, disabled = false) => h("button", { type: "button", className: `st-button ${className}`, onClick, disabled }, label);
  const dag = encodeURIComponent(action.dag_id);
  const page = action.kind === "backfill" ? `/dags/${dag}/backfills` : `/dags/${dag}/runs`;
  if (phase === "started") {
    return h("p", { className: "st-note", role: "status" }, "Started. ", h(PageLink, { path: page, label: `See it in ${action.dag_id}` }));
  }
  return h(
    "div",
    { className: "st-action" },
    h("p", { className: "st-small" }, actionWords(action)),
    problem && h("p", { className: "st-note st-note-bad", role: "alert" }, problem.message),
    phase === "idle" && h("div", null, button("Fill in Airflow …", "st-primary", () => setPhase("asked"))),
    phase !== "idle" && h("div", null, button(phase === "sent" ? "Starting …" : `Yes, start ${plural(action.runs, "run")}`, "st-primary", start, phase === "sent"), button("No", "", () => setPhase("idle"), phase === "sent")),
  );
}

/** A reader: its table, who holds the stream, and how it is forgotten. */
export function Reader({ source, view, reach, close, refresh }) {
  const { body, problem } = useAnswer(`reader/${source.id}`, {}, source.version);
  // what was in view when it was opened: the view moves with the clock
  const [seen] = useState(view);
  return h(
    Frame,
    { title: source.reader, subtitle: source.title, close },
    h(Facts, {
      rows: [
        ["Source", h("span", { className: "st-mono st-break" }, source.key)],
        ["Read by", source.dags.join(", ")],
        ["Runs so far", count(source.runs)],
        ["Covered to", source.covered_end ? `${moment(source.covered_end)} UTC` : "never"],
        ["Stream reaches", reachWords(reach)],
      ],
    }),
    h("h3", null, "Lands in"),
    !body && h(Waiting, { problem }),
    body && h(Facts, { rows: landingFacts(body) }),
    h(Table, { source, window: seen }),
    h("h3", null, "Holds"),
    h(Holds, { source, reach }),
    body && h("h3", null, "Forget"),
    body && h(Forget, { source, body, close, refresh }),
  );
}

function reachWords(reach) {
  if (!reach || reach.pending) return "not known yet";
  if (reach.problem) return `not known: ${reach.problem}`;
  return reach.horizon ? `back to ${moment(reach.horizon)} UTC` : "nothing was removed, or it cannot be told";
}

function Holds({ source, reach }) {
  if (!reach?.holds) return h("p", { className: "st-note" }, reach && !reach.pending ? "What holds the stream cannot be told." : "Not known yet.");
  if (!reach.holds.length) return h("p", { className: "st-note" }, "Nothing keeps unread data of this stream from its retention.");
  const words = ({ since, bytes }) => [since && `from ${moment(since)} UTC`, bytes !== null && `keeps ${size(bytes)}`].filter(Boolean).join(", ");
  return h(
    "ol",
    { className: "st-runs" },
    reach.holds.map((hold) =>
      h(
        "li",
        { key: `${hold.name} ${hold.reader}`, className: "st-run" },
        h("div", { className: "st-mono st-break" }, hold.name),
        h("div", { className: "st-muted" }, hold.reader === source.reader ? "for this reader" : hold.reader ? `for ${hold.reader}` : "for another reader"),
        words(hold) && h("div", { className: "st-muted" }, words(hold)),
      ),
    ),
  );
}

function Forget({ source, body, close, refresh }) {
  const [typed, setTyped] = useState(null);
  const [problem, setProblem] = useState(null);
  if (!body.may_forget) return h("p", { className: "st-note" }, "To forget a reader, you must be allowed to edit every DAG that read for it.");
  const forget = async () => {
    try {
      await post(ours(`forget/${source.id}`), { reader: source.reader, version: source.version });
      close();
      refresh();
    } catch (error) {
      setProblem(error);
      refresh();
    }
  };
  if (typed === null) {
    return h("div", { className: "st-action" }, h("p", { className: "st-small" }, "For readers that are no more. The journal forgets its windows, plans and runs; the table and the stream stay."), h("div", null, h("button", { type: "button", className: "st-button st-danger", onClick: () => setTyped("") }, "Forget this reader …")));
  }
  return h(
    "div",
    { className: "st-action" },
    h("p", { className: "st-small" }, `${plural(source.runs, "run")} will be forgotten${source.running ? `, ${source.running} of them at work or killed` : ""}. No other reader may write into the table that stays. Type the name of the reader:`),
    h("input", { className: "st-input", "aria-label": "Name of the reader", autoFocus: true, value: typed, onChange: (event) => setTyped(event.target.value) }),
    problem && h("p", { className: "st-note st-note-bad", role: "alert" }, problem.message),
    h("div", null, h("button", { type: "button", className: "st-button st-danger", disabled: typed !== source.reader, onClick: forget }, "Forget it for good"), h("button", { type: "button", className: "st-button", onClick: () => setTyped(null) }, "Keep it")),
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

