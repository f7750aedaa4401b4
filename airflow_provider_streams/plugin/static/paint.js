// Draws windows on a canvas: one path per state, however many windows there are.

import { LETTER, STATES } from "./words.js";

const TILE = 6;
// the gravest last: it must not vanish under others
const ORDER = ["covered", "running", "missing", "failed", "lost"];
const LEAST = { covered: 0.5, running: 2, missing: 1.5, failed: 2.5, lost: 2.5 };
const tiles = new Map();

function tile(state, palette, scale) {
  const key = `${state} ${palette[state]} ${scale}`;
  if (!tiles.has(key)) tiles.set(key, drawTile(state, palette[state], scale));
  return tiles.get(key);
}

function drawTile(state, [base, ink], scale) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = TILE * scale;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.fillStyle = base;
  pen.fillRect(0, 0, TILE, TILE);
  pen.strokeStyle = pen.fillStyle = ink;
  pen.lineWidth = 1.2;
  pen.beginPath();
  if (state === "failed" || state === "lost") {
    for (const shift of [-TILE, 0, TILE]) {
      pen.moveTo(shift, TILE);
      pen.lineTo(shift + TILE, 0);
      if (state === "lost") {
        pen.moveTo(shift, 0);
        pen.lineTo(shift + TILE, TILE);
      }
    }
  } else if (state === "running") {
    pen.moveTo(0, 1.5);
    pen.lineTo(TILE, 1.5);
    pen.moveTo(0, 4.5);
    pen.lineTo(TILE, 4.5);
  }
  pen.stroke();
  if (state === "missing") pen.fillRect(2.4, 2.4, 1.2, 1.2);
  return canvas;
}

function brush(pen, state, palette, scale) {
  if (state === "covered") return palette.covered[0];
  const pattern = pen.createPattern(tile(state, palette, scale), "repeat");
  pattern.setTransform(new DOMMatrix().scale(1 / scale));
  return pattern;
}

export function prepare(canvas, width, height) {
  const scale = Math.min(3, globalThis.devicePixelRatio || 1);
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.round(height * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  return { pen, scale };
}

/** A legend's sample. */
export function swatch(canvas, state, palette) {
  const { pen, scale } = prepare(canvas, 18, 14);
  pen.beginPath();
  pen.roundRect(0.5, 0.5, 17, 13, 3);
  pen.fillStyle = brush(pen, state, palette, scale);
  pen.fill();
  if (state === "missing" || state === "running") {
    pen.strokeStyle = palette[state][1];
    pen.setLineDash(state === "missing" ? [3, 2] : []);
    pen.stroke();
  }
}

/** One reader's lane. */
export function lane(canvas, scene) {
  const { width, height, view, palette, horizon, now, lines } = scene;
  const { pen, scale } = prepare(canvas, width, height);
  const perSecond = width / (view.end - view.start);
  const x = (seconds) => (seconds - view.start) * perSecond;
  grid(pen, scene, x, lines);
  if (scene.columns) windows(pen, scene, x, scale);
  if (horizon) beyond(pen, scene, Math.min(width, x(horizon)));
  if (now < view.end) line(pen, x(now), height, palette.now, [3, 3]);
}

function grid(pen, { height, palette }, x, lines) {
  for (const { at, strong } of lines) line(pen, x(at), height, strong ? palette.strong : palette.grid, []);
}

function line(pen, x, height, colour, dash) {
  pen.save();
  pen.beginPath();
  pen.setLineDash(dash);
  pen.moveTo(Math.round(x) + 0.5, 0);
  pen.lineTo(Math.round(x) + 0.5, height);
  pen.strokeStyle = colour;
  pen.stroke();
  pen.restore();
}

function beyond(pen, { height, palette }, x) {
  if (x <= 0) return;
  pen.fillStyle = palette.gone;
  pen.fillRect(0, 0, x, height);
  line(pen, x, height, palette.horizon, []);
  pen.fillStyle = palette.horizon;
  pen.beginPath();
  pen.moveTo(x, 0);
  pen.lineTo(x + 7, 0);
  pen.lineTo(x, 7);
  pen.fill();
}

export const INSET = 9;

/** Where a layer is in the lane. */
export function band(layer, layers, height) {
  const room = height - 2 * INSET;
  const each = (room - (layers - 1) * 2) / layers;
  return { top: INSET + layer * (each + 2), height: each };
}

function windows(pen, scene, x, scale) {
  const { columns, view, height, palette, only } = scene;
  const shapes = Object.fromEntries(ORDER.map((state) => [state, new Path2D()]));
  const letters = [];
  const dots = [];
  const doubts = [];
  const doubles = [];
  const asides = [];
  // one open stretch per layer: narrow neighbours of one state are one shape
  const open = new Array(columns.layers).fill(null);
  const bands = open.map((_, layer) => band(layer, columns.layers, height));
  const close = (layer) => {
    if (open[layer]) shape(shapes[open[layer].state], open[layer], bands[layer]);
    open[layer] = null;
  };
  const until = columns.from(view.end);
  for (let i = columns.touching(view.start); i < until; i += 1) {
    if (columns.end[i] <= view.start) continue;
    const layer = columns.layer[i];
    const state = STATES[columns.state[i]];
    const left = x(columns.start[i]);
    const right = x(columns.end[i]);
    const before = open[layer];
    if (before && right - left < 5 && before.state === state && left - before.right < 0.75 && !before.wide) {
      before.right = right;
    } else {
      close(layer);
      open[layer] = { state, left, right, wide: right - left >= 5 };
    }
    if (right - left >= 15 && LETTER[state]) letters.push(i, layer);
    if (columns.unproven[i]) doubts.push(left, right, layer);
    if (columns.overlaps[i]) doubles.push(left, right, layer);
    if (columns.undecodable[i]) asides.push(left, right, layer);
    if (columns.planned[i] && right - left >= 3) dots.push((left + right) / 2, layer);
  }
  for (let layer = 0; layer < columns.layers; layer += 1) close(layer);
  for (const state of ORDER) {
    pen.globalAlpha = only && only !== state ? 0.14 : 1;
    pen.fillStyle = brush(pen, state, palette, scale);
    pen.fill(shapes[state]);
    if (state === "missing" || state === "running") {
      pen.setLineDash(state === "missing" ? [3, 2] : []);
      pen.lineWidth = 1;
      pen.strokeStyle = palette[state][1];
      pen.stroke(shapes[state]);
      pen.setLineDash([]);
    }
  }
  pen.globalAlpha = 1;
  write(pen, scene, x, letters, bands);
  pins(pen, palette, dots, bands);
  stripes(pen, palette.unproven, doubts, (at) => bands[at].top + bands[at].height - 4, 3);
  stripes(pen, palette.undecodable, asides, (at) => bands[at].top + 1, 3);
  stripes(pen, palette.overlap, doubles, (at) => bands[at].top - 4, 3);
}

/** Thin lines along windows: left, right and layer of each. */
function stripes(pen, colour, ends, top, height) {
  pen.fillStyle = colour;
  for (let at = 0; at < ends.length; at += 3) {
    const width = Math.max(2, ends[at + 1] - ends[at] - 1.5);
    pen.fillRect(ends[at] + 0.75, top(ends[at + 2]), width, height);
  }
}

function shape(path, { state, left, right, wide }, { top, height }) {
  if (wide) {
    const line = state === "missing" || state === "running" ? 0.5 : 0;
    path.roundRect(left + 0.75 + line, top + line, right - left - 1.5 - 2 * line, height - 2 * line, 2.5);
    return;
  }
  const width = Math.max(LEAST[state], right - left);
  path.rect((left + right - width) / 2, top, width, height);
}

function write(pen, { columns, palette, only }, x, letters, bands) {
  pen.font = "600 10px ui-sans-serif, system-ui, sans-serif";
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  for (let at = 0; at < letters.length; at += 2) {
    const i = letters[at];
    const { top, height } = bands[letters[at + 1]];
    const state = STATES[columns.state[i]];
    if (height < 10 || (only && only !== state)) continue;
    const middle = (x(columns.start[i]) + x(columns.end[i])) / 2;
    // a plate under the letter: patterns must not eat it
    pen.fillStyle = palette[state][0];
    pen.beginPath();
    pen.roundRect(middle - 5, top + height / 2 - 6, 10, 12, 3);
    pen.fill();
    pen.fillStyle = palette.letters[state];
    pen.fillText(LETTER[state], middle, top + height / 2 + 0.5);
  }
}

function pins(pen, palette, dots, bands) {
  pen.fillStyle = palette.horizon;
  for (let at = 0; at < dots.length; at += 2) {
    const { top, height } = bands[dots[at + 1]];
    pen.beginPath();
    pen.arc(dots[at], top + height + 4, 2.2, 0, 2 * Math.PI);
    pen.fill();
  }
}
