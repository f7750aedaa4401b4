// The colors of windows by their state: for each a ground and a pattern, so that color and pattern say the same.

export const LIGHT = {
  covered: ["#2a9d8f", "#2a9d8f"],
  running: ["#dbeafe", "#2563eb"],
  lost: ["#8e2a63", "#f3c6dd"],
  failed: ["#d9600f", "#ffd9bd"],
  missing: ["#f3f5f8", "#5b677a"],
  letters: { running: "#1d4ed8", lost: "#ffffff", failed: "#ffffff", missing: "#475467" },
  grid: "rgba(15, 23, 42, 0.07)",
  strong: "rgba(15, 23, 42, 0.16)",
  gone: "rgba(100, 116, 139, 0.16)",
  horizon: "#7c3aed",
  now: "#e11d48",
  overlap: "#b91c1c",
  unproven: "#f5c451",
  undecodable: "#7a3b0c",
};

export const DARK = {
  covered: ["#2ba897", "#2ba897"],
  running: ["#172a4d", "#60a5fa"],
  lost: ["#b8447f", "#3d0f28"],
  failed: ["#ee7f36", "#5a2403"],
  missing: ["#1d232d", "#94a3b8"],
  letters: { running: "#bfdbfe", lost: "#ffffff", failed: "#1b0a00", missing: "#cbd5e1" },
  grid: "rgba(226, 232, 240, 0.07)",
  strong: "rgba(226, 232, 240, 0.18)",
  gone: "rgba(148, 163, 184, 0.14)",
  horizon: "#a78bfa",
  now: "#fb7185",
  overlap: "#f87171",
  unproven: "#fde08a",
  undecodable: "#f2b98a",
};
