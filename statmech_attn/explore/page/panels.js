// Panels of a figure, from the data of plotting/frame/panels.py.
// Drawing one gives its targets: places in pixels with what is told of them.

import { css, mix, rgb, themed } from "./colours.js";
import { LogScale, Scale, colourBar, drawAxes, fitted, tickText } from "./plot.js";
import { element, nodes, quantity, write } from "./text.js";

const NEAR = 22;  // pixels within which a target is told of
const BEHIND = 8;  // pixels by which a line across is farther than a point
const SCALE = 1.5;  // pixels of a point of the printed page
const SMALL = "11px system-ui, sans-serif";
const NAME = 6.3;  // pixels of a letter of a name
const CORNERS = {  // of markers that are polygons, in radii
  s: [[-1, -1], [1, -1], [1, 1], [-1, 1]],
  D: [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]],
  "^": [[0, -1.1], [1.1, 0.9], [-1.1, 0.9]],
  v: [[0, 1.1], [1.1, -0.9], [-1.1, -0.9]],
  P: [[-0.4, -1], [0.4, -1], [0.4, -0.4], [1, -0.4], [1, 0.4], [0.4, 0.4], [0.4, 1], [-0.4, 1],
    [-0.4, 0.4], [-1, 0.4], [-1, -0.4], [-0.4, -0.4]],
  X: [[-1, -0.5], [-0.5, -1], [0, -0.5], [0.5, -1], [1, -0.5], [0.5, 0], [1, 0.5], [0.5, 1],
    [0, 0.5], [-0.5, 1], [-1, 0.5], [-0.5, 0]],
};
const STROKES = {  // of markers that are strokes
  x: [[-1, -1, 1, 1], [-1, 1, 1, -1]], "+": [[-1, 0, 1, 0], [0, -1, 0, 1]],
  _: [[-1, 0, 1, 0]], "|": [[0, -1, 0, 1]],
};

export function nearest(targets, [px, py]) {
  let [best, least] = [-1, NEAR];
  targets.forEach(({ x, y, half: [w, h] = [0, 0], behind = 0 }, i) => {
    const away = Math.hypot(Math.max(Math.abs(x - px) - w, 0), Math.max(Math.abs(y - py) - h, 0));
    if (away + behind < least) [best, least] = [i, away + behind];
  });
  return best;
}

// An axis to pixels; names of its places, as many as there is room for.
function scaleOf({ kind, range, ticks, theta }, from, to, room = 14) {
  let [low, high] = range;
  if (low > high) [low, high, from, to] = [high, low, to, from];
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  const scale = kind === "log" ? new LogScale(low, high, from, to) : new Scale(low, high, from, to, theta);
  if (!ticks) return scale;
  const names = new Map(ticks.filter(([at]) => at >= low && at <= high));
  const every = Math.ceil(room / (Math.abs(to - from) / Math.max(names.size, 1)));
  scale.ticks = () => [...names.keys()].filter((_, i) => i % every === 0);
  scale.text = (tick) => names.get(tick);
  scale.names = names;
  return scale;
}

const widest = ({ ticks }) => NAME * Math.max(0, ...(ticks ?? []).map(([, name]) => name.length));

export function drawPanel(canvas, panel) {
  const { context, width, height } = fitted(canvas);
  const two = NAME * panel.y.words.length > height - 60;  // lines of words beside the axis
  const level = scaleOf(panel.y, height, 0);
  const longest = Math.max(...level.ticks(height / 34).map((tick) => level.text(tick).length));
  const left = Math.max(68, Math.min(7 * longest, 140) + 34) + (two ? 13 : 0);
  const turned = widest(panel.x) * (panel.x.ticks?.length ?? 0) > width - left - 20 && widest(panel.x) > 35;
  const box = [left, 10, width - (panel.right ? 62 : 12), height - (turned ? 78 : 42)];
  if (panel.shape === "square") {
    const size = Math.min(box[2] - box[0], box[3] - box[1]);
    [box[2], box[3]] = [box[0] + size, box[1] + size];
  }
  const scales = {
    box, panel, x: scaleOf(panel.x, box[0], box[2], turned ? 15 : widest(panel.x) + 6),
    y: scaleOf(panel.y, box[3], box[1]),
    right: panel.right && scaleOf(panel.right, box[3], box[1]),
  };
  const targets = [];
  context.save();
  context.beginPath();
  context.rect(box[0], box[1], box[2] - box[0], box[3] - box[1]);
  context.clip();
  for (const mark of panel.marks) {
    const of = mark.twin ? { ...scales, y: scales.right, words: panel.right.words } : { ...scales, words: panel.y.words };
    context.save();
    paint(context, mark);
    DRAWN[mark.type](context, mark, of, targets);
    context.restore();
  }
  context.restore();
  drawAxes(context, { x: scales.x, y: scales.y, box, xWords: panel.x.words, yWords: two ? halves(panel.y.words) : panel.y.words,
    turned, apart: [70, 34], wordsAt: turned ? 58 : 22 });
  if (scales.right) drawRight(context, scales, panel);
  return targets.filter(({ x, y }) => x > box[0] - 2 && x < box[2] + 2 && y > box[1] - 2 && y < box[3] + 2);
}

// Words in two lines of nearly the same length.
function halves(words) {
  const blanks = [...words.matchAll(/ /g)].map(({ index }) => index);
  const at = blanks.sort((a, b) => Math.abs(a - words.length / 2) - Math.abs(b - words.length / 2))[0];
  return at ? `${words.slice(0, at)}\n${words.slice(at + 1)}` : words;
}

function paint(context, { colour, alpha = 1, width = 1, dash = [] }) {
  context.strokeStyle = context.fillStyle = themed(colour ?? "#000000");
  context.globalAlpha = alpha;
  context.lineWidth = Math.max(SCALE * width, 0.9);
  context.setLineDash(dash.map((length) => length * Math.max(SCALE * width, 1)));
}

// The scale of a twin, on the right.
function drawRight(context, { right: scale, box }, { right: axis, marks }) {
  const colour = marks.find((mark) => mark.twin && mark.colour)?.colour;
  context.save();
  context.fillStyle = context.strokeStyle = themed(colour ?? "#000000");
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.textAlign = "left";
  for (const tick of scale.ticks(Math.max(2, Math.floor((box[3] - box[1]) / 34)))) {
    const at = Math.round(scale.at(tick)) + 0.5;
    line(context, [box[2], at, box[2] + 4, at]);
    context.fillText(scale.text(tick), box[2] + 7, at);
  }
  context.translate(box[2] + 52, (box[1] + box[3]) / 2);
  context.rotate(Math.PI / 2);
  context.textAlign = "center";
  write(context, axis.words, 0, 0);
  context.restore();
}

function line(context, [x0, y0, x1, y1]) {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}

// Lines through points, with gaps where one is not known, or in steps.
function path(context, { x, y, step }, across, up) {
  context.beginPath();
  let last = null;
  x.forEach((value, i) => {
    if (value === null || y[i] === null) { last = null; return; }
    const [px, py] = [across.at(value), up.at(y[i])];
    if (!last) context.moveTo(px, py);
    else {
      if (step === "post") context.lineTo(px, last[1]);
      if (step === "pre") context.lineTo(last[0], py);
      if (step === "mid") for (const at of [last[1], py]) context.lineTo((last[0] + px) / 2, at);
      context.lineTo(px, py);
    }
    last = [px, py];
  });
  context.stroke();
}

function marker(context, { marker: shape, size, fill, edge, edge_width: thick = 0.6 }, px, py) {
  const radius = Math.max(size * (shape === "." ? 0.5 : 0.95), 1.3);
  context.beginPath();
  if (STROKES[shape]) {
    for (const [a, b, c, d] of STROKES[shape]) {
      context.moveTo(px + a * radius, py + b * radius);
      context.lineTo(px + c * radius, py + d * radius);
    }
  } else if (CORNERS[shape]) {
    for (const [a, b] of CORNERS[shape]) context.lineTo(px + a * radius, py + b * radius);
    context.closePath();
  } else context.arc(px, py, radius, 0, 2 * Math.PI);
  if (fill && !STROKES[shape]) {
    context.fillStyle = fill === "#ffffff" ? css("--panel") : themed(fill);
    context.fill();
  }
  if (!edge || !(thick || STROKES[shape])) return;
  context.strokeStyle = edge === "#ffffff" ? css("--panel") : themed(edge);
  context.lineWidth = Math.max(SCALE * thick, 1);
  context.stroke();
}

// A number of an axis, by its name where it has one.
function told(scale, value) {
  return scale.names?.get(value) ?? tickText(Number(value.toPrecision(5)), value);
}

// A value between the ends of its error bar.
function withError(value, low, high) {
  if (low === null || high === null || low === undefined || low === high) return quantity(value);
  const [below, above] = [value - low, high - value];
  if (Math.abs(below - above) <= 0.01 * (high - low)) return quantity(value, above);
  return `${quantity(value)} (${quantity(low)} to ${quantity(high)})`;
}

function sentence({ words, told: more }, panel, scales, x, y) {
  const of = words ? `${words}: ` : "";
  const place = `${panel.x.words} ${told(scales.x, x)}, ${scales.words} ${y}`;
  return `${of}${place}${more ? `; ${more}` : ""}`;
}

const DRAWN = {
  line(context, mark, scales, targets) {
    const { x: xs, y: ys, error } = mark;
    const { x, y, panel } = scales;
    if (mark.width) path(context, mark, x, y);
    context.setLineDash([]);
    xs.forEach((value, i) => {
      if (value === null || ys[i] === null) return;
      const [px, py] = [x.at(value), y.at(ys[i])];
      const [low, high] = [error?.[0][i], error?.[1][i]];
      context.lineWidth = 1.2;
      if (error && low !== null) line(context, [px, y.at(low), px, y.at(high)]);
      if (mark.marker) marker(context, mark, px, py);
      const text = () => sentence(mark, panel, scales, value, withError(ys[i], low, high));
      targets.push({ x: px, y: py, behind: mark.told ? -BEHIND : 0, text });
    });
  },
  band(context, { x: xs, low, high }, { x, y }) {
    context.beginPath();
    xs.forEach((value, i) => context.lineTo(x.at(value), y.at(low[i])));
    for (let i = xs.length - 1; i >= 0; i -= 1) context.lineTo(x.at(xs[i]), y.at(high[i]));
    context.fill();
  },
  bars(context, mark, scales, targets) {
    const { left, right, base, top, error, colours } = mark;
    const { x, y, panel } = scales;
    left.forEach((value, i) => {
      if (top[i] === null) return;
      const [from, to, foot, head] = [x.at(value), x.at(right[i]), y.at(base[i]), y.at(top[i])];
      context.globalAlpha = mark.alpha;
      context.fillStyle = themed(colours[i], 1);
      context.fillRect(from, foot, to - from, head - foot);
      context.globalAlpha = 1;
      const ends = [error?.[0][i] ?? null, error?.[1][i] ?? null];
      if (ends[0] !== null) {
        context.strokeStyle = css("--ink");
        line(context, [(from + to) / 2, y.at(ends[0]), (from + to) / 2, y.at(ends[1])]);
      }
      const middle = [...(x.names?.keys() ?? [])].find((at) => at > value && at < right[i]);
      const text = () => sentence(mark, panel, scales, middle ?? (value + right[i]) / 2,
        withError(top[i] - base[i], ...ends.map((end) => end && end - base[i])));
      targets.push({ x: (from + to) / 2, y: (foot + head) / 2,
        half: [(to - from) / 2, Math.abs(foot - head) / 2], text });
    });
  },
  segments(context, { ends, colours, words }, { x, y, panel, words: up }, targets) {
    ends.forEach((segment, i) => {
      if (segment.includes(null)) return;
      const [a, b, c, d] = segment.map((value, k) => (k % 2 ? y : x).at(value));
      context.strokeStyle = themed(colours[i % colours.length]);
      line(context, [a, b, c, d]);
      if (segment[1] !== segment[3]) return;
      const text = () => `${words || panel.x.words}: ${up} ${quantity(segment[1])}`;
      targets.push({ x: (a + c) / 2, y: b, half: [Math.abs(c - a) / 2, 0], behind: BEHIND, text });
    });
  },
  level(context, { value, words }, { box, y, words: up }, targets) {
    line(context, [box[0], y.at(value), box[2], y.at(value)]);
    const text = () => `${words ? `${words}: ` : ""}${up} ${quantity(value)}`;
    targets.push({ x: (box[0] + box[2]) / 2, y: y.at(value), half: [(box[2] - box[0]) / 2, 0],
      behind: BEHIND, text });
  },
  place(context, { value, words }, { box, x, panel }, targets) {
    line(context, [x.at(value), box[1], x.at(value), box[3]]);
    const text = () => `${words ? `${words}: ` : ""}${panel.x.words} ${told(x, value)}`;
    targets.push({ x: x.at(value), y: (box[1] + box[3]) / 2, half: [0, (box[3] - box[1]) / 2],
      behind: BEHIND, text });
  },
  span(context, { axis, from, to }, { box, x, y }) {
    if (axis === "x") context.fillRect(x.at(from), box[1], x.at(to) - x.at(from), box[3] - box[1]);
    else context.fillRect(box[0], y.at(from), box[2] - box[0], y.at(to) - y.at(from));
  },
  cells(context, mark, { x, y, panel }, targets) {
    const [across, up] = [mark.x.map((edge) => x.at(edge)), mark.y.map((edge) => y.at(edge))];
    const code = mark.bounds && ((value) => mark.bounds.findLastIndex((edge) => edge <= value));
    mark.values.forEach((row, i) => row.forEach((value, j) => {
      if (value === null) return;
      const [left, top, right, bottom] = [across[j], up[i], across[j + 1], up[i + 1]];
      context.fillStyle = colourOf(mark, value, code);
      const [w, h] = [right - left, bottom - top];
      context.fillRect(left, top, w + 0.8 * Math.sign(w), h + 0.8 * Math.sign(h));
      const text = () => {
        const at = [told(x, (mark.x[j] + mark.x[j + 1]) / 2), told(y, (mark.y[i] + mark.y[i + 1]) / 2)];
        const what = mark.words ? `${mark.words} ` : "";
        return `${panel.x.words} ${at[0]}, ${panel.y.words} ${at[1]}: ${what}${quantity(value, mark.errors?.[i][j])}`;
      };
      targets.push({ x: (left + right) / 2, y: (top + bottom) / 2,
        half: [Math.abs(w) / 2, Math.abs(h) / 2], text });
    }));
  },
  text(context, mark, { x, y, box, panel }) {
    const inside = (at, value, scale, from, to) => (at === "axes" ? from + value * (to - from) : scale.at(value));
    const [px, py] = [inside(mark.at[0], mark.x, x, box[0], box[2]), inside(mark.at[1], mark.y, y, box[3], box[1])];
    const [across, up] = mark.align;
    const onColour = panel.marks.some(({ type }) => type === "cells" || type === "bars");
    context.font = SMALL;
    context.fillStyle = onColour ? mark.colour : themed(mark.colour);
    context.textAlign = across;
    context.textBaseline = { center: "middle", center_baseline: "middle", baseline: "alphabetic" }[up] ?? up;
    const [dx, dy] = mark.offset;
    write(context, mark.text, px + SCALE * dx, py - SCALE * dy);
  },
};

// The colour of a value of a matrix.
function colourOf({ stops, range: [low, high], bounds }, value, code) {
  if (bounds) return stops[Math.max(0, Math.min(stops.length - 1, code(value)))];
  const at = Math.max(0, Math.min(1, high > low ? (value - low) / (high - low) : 0.5)) * (stops.length - 1);
  const k = Math.min(Math.floor(at), stops.length - 2);
  return `rgb(${mix(rgb(stops[k]), rgb(stops[k + 1]), at - k).join(" ")})`;
}

// Entries of a legend, each with a small picture of its look.
export function legendOf(entries) {
  return entries.map((entry) => {
    const canvas = element("canvas", { class: "key", width: 52, height: 26, "aria-hidden": true });
    const context = canvas.getContext("2d");
    context.scale(2, 2);
    paint(context, entry);
    if (["band", "bars", "span"].includes(entry.type)) {
      if ((entry.alpha ?? 1) === 1) context.fillStyle = themed(entry.colour ?? "#000000", 1);
      context.fillRect(2, 2, 22, 9);
    } else {
      if (entry.width) line(context, [1, 6.5, 25, 6.5]);
      context.setLineDash([]);
      if (entry.marker) marker(context, entry.marker === "." ? { ...entry, size: Math.max(entry.size, 6) } : entry, 13, 6.5);
    }
    return element("span", {}, canvas, ...nodes(entry.words));
  });
}

// The colour scales of a panel.
export function scalesOf({ marks }) {
  return marks.filter(({ type, bounds }) => type === "cells" && !bounds).map(({ stops, range, words }) => {
    const table = Array.from({ length: 256 }, (_, i) => {
      const k = Math.min(Math.floor((i / 256) * (stops.length - 1)), stops.length - 2);
      return mix(rgb(stops[k]), rgb(stops[k + 1]), (i / 256) * (stops.length - 1) - k);
    });
    return colourBar(table, range, words);
  });
}
