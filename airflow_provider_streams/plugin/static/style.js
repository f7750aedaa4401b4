// The page's look. Its own variables, set for light and for dark, so that it looks the same in every Airflow theme.

const LIGHT = `
  --st-bg: #ffffff; --st-raised: #ffffff; --st-soft: #f7f8fa; --st-hover: #f4f6f9;
  --st-line: #e6e9ef; --st-line-strong: #d3d8e1;
  --st-text: #10182b; --st-muted: #5c6779; --st-accent: #0b67d0; --st-on-accent: #ffffff; --st-focus: #2f80ed;
  --st-covered: #2a9d8f; --st-running: #2563eb; --st-lost: #8e2a63; --st-failed: #d9600f; --st-missing: #5b677a;
  --st-covered-bg: #dff4f0; --st-running-bg: #e3edfd; --st-lost-bg: #f8e3ef; --st-failed-bg: #feeadb; --st-missing-bg: #eef1f5;
  --st-covered-fg: #0f5f55; --st-running-fg: #1d4ed8; --st-lost-fg: #7a1f53; --st-failed-fg: #93400a; --st-missing-fg: #3f4a5b;
  --st-bad-bg: #fff1ec; --st-bad-fg: #8c2f0a; --st-shadow: 0 8px 28px rgba(15, 23, 42, 0.16), 0 1px 3px rgba(15, 23, 42, 0.12);
  --st-pulsar: #155eaf; --st-pulsar-bg: #e4effb; --st-pravega: #0b6b5d; --st-pravega-bg: #dcf3ee;
  color-scheme: light;`;

const DARK = `
  --st-bg: #11151c; --st-raised: #1a2029; --st-soft: #161b23; --st-hover: #1a212b;
  --st-line: #262e3a; --st-line-strong: #38424f;
  --st-text: #e8ecf2; --st-muted: #98a4b5; --st-accent: #5ea8ff; --st-on-accent: #08111f; --st-focus: #5ea8ff;
  --st-covered: #2ba897; --st-running: #60a5fa; --st-lost: #d76aa4; --st-failed: #f28b48; --st-missing: #94a3b8;
  --st-covered-bg: #12332f; --st-running-bg: #16294a; --st-lost-bg: #3d1930; --st-failed-bg: #3e2312; --st-missing-bg: #262e3a;
  --st-covered-fg: #7fe0d2; --st-running-fg: #a9cdff; --st-lost-fg: #f4b6d6; --st-failed-fg: #ffc59c; --st-missing-fg: #cbd5e1;
  --st-bad-bg: #3a1f16; --st-bad-fg: #ffc2a8; --st-shadow: 0 10px 32px rgba(0, 0, 0, 0.55), 0 0 0 1px rgba(255, 255, 255, 0.06);
  --st-pulsar: #9ccbff; --st-pulsar-bg: #152a45; --st-pravega: #86e0d0; --st-pravega-bg: #12332f;
  color-scheme: dark;`;

const RULES = `
.st-page { ${LIGHT}
  background: var(--st-bg); color: var(--st-text); min-height: 100%; height: 100%; display: flex; flex-direction: column;
  font: 14px/1.45 ui-sans-serif, system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums; -webkit-font-smoothing: antialiased; text-align: start; overflow: hidden; }
.st-page.st-dark { ${DARK} }
.st-page *, .st-page *::before { box-sizing: border-box; }
.st-page button, .st-page input { font: inherit; color: inherit; }
:where(.st-page) :where(h1, h2, h3, p, dl, dd, ol) { margin: 0; padding: 0; }
.st-muted { color: var(--st-muted); } .st-small { font-size: 12.5px; }
.st-mono { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 11.5px; }
.st-break { overflow-wrap: anywhere; }
.st-ellipsis { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }

.st-head { padding: 20px 24px 12px; display: flex; flex-wrap: wrap; gap: 12px 24px; align-items: flex-end; }
.st-head h1 { font-size: 22px; line-height: 1.2; font-weight: 650; letter-spacing: -0.015em; }
.st-head-words { flex: 1 1 260px; min-width: 0; }
.st-status { margin-top: 4px; color: var(--st-muted); display: flex; align-items: center; gap: 8px; font-size: 13px; }
.st-live { width: 8px; height: 8px; border-radius: 50%; background: var(--st-covered); flex: none; }
.st-live.st-stale { background: var(--st-failed); }
.st-tools { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; }
.st-input { height: 32px; padding: 0 10px; border: 1px solid var(--st-line-strong); border-radius: 8px; background: var(--st-raised); min-width: 0; }
.st-page .st-input::placeholder { color: var(--st-muted); opacity: 1; }
.st-button { height: 32px; min-width: 32px; padding: 0 12px; border: 1px solid var(--st-line-strong); border-radius: 8px; background: var(--st-raised); cursor: pointer; font-weight: 500; white-space: nowrap; }
.st-button:hover { background: var(--st-hover); }
.st-button.st-icon { padding: 0; width: 32px; flex: none; }
.st-button.st-primary { background: var(--st-accent); border-color: var(--st-accent); color: var(--st-on-accent); font-weight: 600; }
.st-button.st-primary:hover { filter: brightness(1.08); }
.st-joined { display: flex; } .st-joined .st-button { border-radius: 0; margin-inline-start: -1px; }
.st-joined .st-button:first-child { border-radius: 8px 0 0 8px; margin: 0; } .st-joined .st-button:last-child { border-radius: 0 8px 8px 0; }
.st-segments { display: inline-flex; padding: 3px; gap: 2px; border-radius: 9px; background: var(--st-soft); border: 1px solid var(--st-line); }
.st-segments button { height: 26px; padding: 0 12px; border: 0; border-radius: 6px; background: transparent; cursor: pointer; color: var(--st-muted); font-weight: 500; }
.st-segments button:hover { color: var(--st-text); }
.st-segments button[aria-checked="true"] { background: var(--st-raised); color: var(--st-text); box-shadow: 0 1px 2px rgba(0, 0, 0, 0.18), 0 0 0 1px var(--st-line); }
.st-page :focus-visible { outline: 2px solid var(--st-focus); outline-offset: 2px; }

.st-legend { display: flex; flex-wrap: wrap; gap: 4px 6px; padding: 0 24px 12px 16px; align-items: center; }
.st-legend button { display: inline-flex; align-items: center; gap: 7px; height: 28px; padding: 0 10px 0 8px; border: 1px solid transparent; border-radius: 8px; background: transparent; cursor: pointer; }
.st-legend button:hover { background: var(--st-hover); }
.st-legend button[aria-pressed="true"] { border-color: var(--st-line-strong); background: var(--st-soft); }
.st-legend b { font-weight: 600; } .st-legend canvas { display: block; }
.st-legend-other { display: inline-flex; align-items: center; gap: 7px; padding: 0 8px; color: var(--st-muted); font-size: 13px; }
.st-key-horizon { width: 14px; height: 14px; border-inline-start: 2px solid #7c3aed; background: rgba(100, 116, 139, 0.22); transform: scaleX(-1); }
.st-key-now { width: 0; height: 14px; border-inline-start: 2px dotted #e11d48; }
.st-key-overlap { width: 14px; height: 4px; background: #b91c1c; } .st-dark .st-key-overlap { background: #f87171; }
.st-key-unproven { width: 14px; height: 12px; border-radius: 3px; background: var(--st-covered); border-bottom: 4px solid #f5c451; }
.st-key-undecodable { width: 14px; height: 12px; border-radius: 3px; background: var(--st-covered); border-top: 4px solid #7a3b0c; } .st-dark .st-key-undecodable { border-color: #f2b98a; }
.st-key-pin { width: 6px; height: 6px; border-radius: 50%; background: #7c3aed; }
.st-dark .st-key-horizon { border-color: #a78bfa; } .st-dark .st-key-now { border-color: #fb7185; } .st-dark .st-key-pin { background: #a78bfa; }

.st-banner { margin: 0 24px 12px; padding: 10px 14px; border-radius: 10px; background: var(--st-bad-bg); color: var(--st-bad-fg); display: flex; gap: 12px; align-items: center; justify-content: space-between; }
.st-main { flex: 1; min-height: 0; display: flex; border-top: 1px solid var(--st-line); }
.st-table { flex: 1; min-width: 0; overflow: auto; position: relative; }
.st-row, .st-axis { display: grid; grid-template-columns: minmax(150px, 250px) minmax(240px, 1fr) 92px 122px; align-items: center; column-gap: 16px; padding: 0 24px; }
.st-axis { position: sticky; top: 0; z-index: 3; height: 38px; background: var(--st-bg); border-bottom: 1px solid var(--st-line); color: var(--st-muted); font-size: 12px; }
.st-axis > div { min-width: 0; } .st-axis-ticks { position: relative; height: 100%; }
.st-tick { position: absolute; bottom: 8px; transform: translateX(-50%); white-space: nowrap; }
.st-tick::after { content: ""; position: absolute; left: 50%; bottom: -8px; height: 5px; border-left: 1px solid var(--st-line-strong); }
.st-tick.st-strong { color: var(--st-text); font-weight: 600; }
.st-axis-head { font-weight: 600; letter-spacing: 0.01em; } .st-axis .st-right { text-align: end; }
.st-row { border-bottom: 1px solid var(--st-line); min-height: 62px; } .st-row:hover { background: var(--st-hover); }
.st-row-on, .st-row-on:hover { background: var(--st-soft); }
.st-name { min-width: 0; display: block; width: 100%; padding: 4px 0; border: 0; background: transparent; text-align: start; cursor: pointer; }
.st-name:hover .st-name-end { text-decoration: underline; } .st-held { flex: none; font-size: 11px; font-weight: 600; padding: 0 5px; line-height: 16px; border-radius: 5px; border: 1px solid var(--st-line-strong); } .st-name-title { display: flex; min-width: 0; font-weight: 600; }
.st-name-path { color: var(--st-muted); font-weight: 500; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; flex: 0 1 auto; }
.st-name-end { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; flex: 0 0 auto; max-width: 100%; }
.st-name-reader { display: flex; align-items: center; gap: 7px; margin-top: 2px; font-size: 12.5px; color: var(--st-muted); min-width: 0; }
.st-system { font-size: 11px; font-weight: 600; padding: 0 6px; line-height: 17px; border-radius: 5px; background: var(--st-missing-bg); color: var(--st-missing-fg); flex: none; }
.st-system-pulsar { background: var(--st-pulsar-bg); color: var(--st-pulsar); } .st-system-pravega { background: var(--st-pravega-bg); color: var(--st-pravega); }
.st-cell { text-align: end; min-width: 0; white-space: nowrap; } .st-figure { font-weight: 600; } .st-late { color: var(--st-failed-fg); }
.st-under { font-size: 12px; color: var(--st-muted); display: flex; gap: 8px; justify-content: flex-end; }
.st-problem { display: inline-flex; align-items: center; gap: 4px; color: var(--st-text); }
.st-dot { display: inline-block; width: 8px; height: 8px; border-radius: 2.5px; background: currentColor; flex: none; }
.st-dot.st-covered { background: var(--st-covered); } .st-dot.st-running { background: var(--st-running); border-radius: 50%; }
.st-dot.st-lost { background: var(--st-lost); transform: rotate(45deg) scale(0.9); } .st-dot.st-failed { background: var(--st-failed); clip-path: polygon(50% 0, 100% 100%, 0 100%); border-radius: 0; }
.st-dot.st-overlapping { height: 4px; background: #b91c1c; border-radius: 0; }
.st-dot.st-missing { background: transparent; border: 1.5px dashed var(--st-missing); }

.st-lane { position: relative; cursor: crosshair; touch-action: pan-y; border-radius: 6px; user-select: none; overflow: hidden; }
.st-page .st-lane:focus-visible { outline-offset: 1px; }
.st-lane canvas { display: block; position: absolute; inset: 0; }
.st-mark { position: absolute; top: 5px; bottom: 5px; border-radius: 4px; pointer-events: none; border: 2px solid var(--st-text); }
.st-mark-span, .st-mark-chosen { border-color: var(--st-accent); top: 2px; bottom: 2px; } .st-mark-span { background: color-mix(in srgb, var(--st-accent) 9%, transparent); }
.st-skeleton { position: absolute; inset: 9px 0; border-radius: 5px; background: linear-gradient(90deg, var(--st-soft), var(--st-line), var(--st-soft)); background-size: 200% 100%; animation: st-shimmer 1.4s linear infinite; }
@keyframes st-shimmer { from { background-position: 200% 0; } to { background-position: 0 0; } }

.st-tip { position: fixed; z-index: 1500; pointer-events: none; max-width: 340px; padding: 9px 12px; border-radius: 10px; background: var(--st-raised); color: var(--st-text); box-shadow: var(--st-shadow); font-size: 13px; }
.st-tip-title { font-weight: 600; } .st-tip-state { display: flex; align-items: center; gap: 6px; } .st-tip-cause { color: var(--st-muted); overflow-wrap: anywhere; }

.st-panel { width: 400px; max-width: 45%; flex: none; border-inline-start: 1px solid var(--st-line); background: var(--st-raised); display: flex; flex-direction: column; min-height: 0; }
.st-page .st-panel:focus { outline: none; }
.st-panel-head { display: flex; justify-content: space-between; gap: 12px; padding: 16px 18px 12px; border-bottom: 1px solid var(--st-line); }
.st-panel-head > div { min-width: 0; } .st-panel h2 { font-size: 16px; font-weight: 650; letter-spacing: -0.01em; }
.st-panel-body { overflow: auto; padding: 14px 18px 24px; display: flex; flex-direction: column; gap: 12px; }
.st-panel h3 { font-size: 13px; font-weight: 600; margin-top: 6px; padding-bottom: 6px; border-bottom: 1px solid var(--st-line); }
.st-lead { display: flex; gap: 10px; align-items: center; flex-wrap: wrap; font-weight: 550; } p.st-lead { display: block; }
.st-badge { display: inline-block; padding: 1px 8px; border-radius: 6px; font-size: 12px; font-weight: 600; line-height: 19px; white-space: nowrap; }
${["covered", "running", "lost", "failed", "missing"].map((state) => `.st-badge-${state} { background: var(--st-${state}-bg); color: var(--st-${state}-fg); }`).join("\n")}
.st-chips { display: flex; gap: 6px; flex-wrap: wrap; margin-top: 10px; }
.st-facts { font-size: 13px; } .st-facts > div { display: grid; grid-template-columns: 112px 1fr; gap: 10px; padding: 3px 0; }
.st-facts dt { color: var(--st-muted); } .st-facts dd { min-width: 0; }
.st-runs { list-style: none; display: flex; flex-direction: column; gap: 14px; }
.st-run { font-size: 13px; display: flex; flex-direction: column; gap: 3px; padding-bottom: 12px; border-bottom: 1px solid var(--st-line); } .st-run:last-child { border: 0; padding: 0; }
.st-run-head { display: flex; align-items: center; gap: 8px; min-width: 0; }
.st-link { color: var(--st-accent); font-weight: 600; overflow-wrap: anywhere; text-decoration: none; } .st-link:hover { text-decoration: underline; }
.st-error { margin: 4px 0 0; padding: 9px 11px; border-radius: 8px; background: var(--st-bad-bg); color: var(--st-bad-fg); white-space: pre-wrap; overflow-wrap: anywhere; font: 12px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.st-note { padding: 9px 12px; border-radius: 8px; background: var(--st-soft); color: var(--st-muted); font-size: 13px; overflow-wrap: anywhere; } .st-note-bad { background: var(--st-bad-bg); color: var(--st-bad-fg); }
.st-big { display: grid; grid-template-columns: repeat(3, 1fr); gap: 8px; } .st-big > div { background: var(--st-soft); border-radius: 10px; padding: 10px 12px; min-width: 0; }
.st-big b { display: block; font-size: 17px; font-weight: 650; letter-spacing: -0.02em; white-space: nowrap; } .st-big span { color: var(--st-muted); font-size: 12.5px; }
.st-command { display: flex; flex-direction: column; gap: 10px; align-items: flex-end; }
.st-small code { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; white-space: nowrap; }
.st-command > code { width: 100%; padding: 11px 12px; border-radius: 8px; background: var(--st-soft); border: 1px solid var(--st-line); font: 12px/1.6 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-x: auto; white-space: pre; }
.st-lines i { display: block; height: 12px; margin: 8px 0; border-radius: 5px; background: var(--st-line); } .st-lines i:nth-child(2) { width: 80%; } .st-lines i:nth-child(3) { width: 55%; }

.st-action { display: flex; flex-direction: column; gap: 8px; padding: 12px; border: 1px solid var(--st-line-strong); border-radius: 10px; }
.st-action > div { display: flex; gap: 8px; flex-wrap: wrap; align-items: center; }
.st-button.st-danger { border-color: var(--st-bad-fg); color: var(--st-bad-fg); } .st-page button:disabled { opacity: 0.5; cursor: not-allowed; }
.st-input[aria-invalid="true"] { border-color: var(--st-failed); } .st-input.st-time { width: 152px; font-variant-numeric: tabular-nums; }
.st-empty { padding: 72px 24px; max-width: 620px; margin: 0 auto; text-align: center; } .st-empty h2 { font-size: 18px; font-weight: 650; margin-bottom: 6px; }
.st-empty pre { text-align: start; margin: 20px 0 0; padding: 14px 16px; border-radius: 10px; background: var(--st-soft); border: 1px solid var(--st-line); overflow: auto; font: 12.5px/1.6 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.st-hint { padding: 12px 24px 16px; color: var(--st-muted); font-size: 12.5px; } .st-hint kbd { font: inherit; font-weight: 600; padding: 0 5px; border: 1px solid var(--st-line-strong); border-radius: 5px; background: var(--st-soft); color: var(--st-text); }
@media (max-width: 1000px) { .st-panel { position: absolute; inset: 0 0 0 auto; max-width: 92%; z-index: 5; box-shadow: var(--st-shadow); } .st-main { position: relative; } }
@media (prefers-reduced-motion: reduce) { .st-skeleton { animation: none; } }
`;

export function install() {
  if (document.getElementById("streams-style")) return;
  const style = document.createElement("style");
  style.id = "streams-style";
  style.textContent = RULES;
  document.head.append(style);
}

/** Airflow marks its theme on the root element; where nothing is marked, the system decides. */
export function isDark() {
  const { classList, dataset } = document.documentElement;
  const named = dataset.theme ?? (classList.contains("dark") ? "dark" : classList.contains("light") ? "light" : null);
  if (named) return named === "dark";
  return globalThis.matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Calls back whenever the theme may have changed; gives a function that ends it. */
export function watchTheme(changed) {
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["class", "data-theme"] });
  const query = globalThis.matchMedia("(prefers-color-scheme: dark)");
  query.addEventListener("change", changed);
  return () => {
    observer.disconnect();
    query.removeEventListener("change", changed);
  };
}
