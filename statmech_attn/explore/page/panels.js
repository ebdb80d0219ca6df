// Panels of a sheet: charts of lines, dots and bars, and matrices in colours.
// Drawing one gives its targets: places in pixels with what is told of them.

import { LINES, css, dark, place, ramp } from "./colours.js";
import { LogScale, NameScale, Scale, colourBar, drawAxes, fitted, swatch } from "./plot.js";
import { element, quantity, symbol, typeset } from "./text.js";

const NEAR = 22;  // pixels within which a target is told of
const SMALL = "11px system-ui, sans-serif";
const WRITTEN = 8;  // rows of a matrix up to which its numbers are written
const shade = (number) => {
  const colours = LINES[dark() ? "dark" : "light"];
  return colours[number % colours.length];
};

// Pixels that the longest of some names needs.
const widthOf = (names) => 7 * Math.max(...names.map((name) => name.length)) + 6;

export function drawPanel(canvas, panel) {
  return panel.type === "matrix" ? drawMatrix(canvas, panel) : drawChart(canvas, panel);
}

export function nearest(targets, [px, py]) {
  let [best, least] = [-1, NEAR ** 2];
  targets.forEach(({ x, y, half = 0 }, i) => {
    const away = Math.max(Math.abs(x - px) - half, 0) ** 2 + Math.max(Math.abs(y - py) - half, 0) ** 2;
    if (away < least) [best, least] = [i, away];
  });
  return best;
}

// Values of an axis that all rows, their errors and the lines need.
function extent(panel, axis) {
  const logarithmic = panel.logarithmic?.includes(axis);
  const values = [];
  for (const row of panel.rows) {
    row[axis].forEach((value, i) => {
      if (value === null || row.x[i] === null || row.y[i] === null) return;
      values.push(value);
      const error = axis === "y" ? row.error?.[i] : null;
      if (error) values.push(value - error, value + error);
    });
    if (axis === "y" && row.look === "bars") values.push(0);
  }
  const lines = axis === "y" ? panel.levels : panel.places;
  for (const [, value] of lines ?? []) values.push(value);
  if (axis === "x") for (const [, ...ends] of panel.shaded ?? []) values.push(...ends);
  const usable = values.filter((v) => Number.isFinite(v) && (!logarithmic || v > 0));
  if (!usable.length) return [logarithmic ? 1 : 0, logarithmic ? 10 : 1];
  return [Math.min(...usable), Math.max(...usable)];
}

function scaleOf(panel, axis, from, to, turned = false) {
  if (axis === "x" && panel.names) {
    return new NameScale(panel.names, from, to, turned ? 16 : widthOf(panel.names));
  }
  let [low, high] = extent(panel, axis);
  if (panel.logarithmic?.includes(axis)) {
    const room = high > low ? (high / low) ** 0.06 : 2;
    return new LogScale(low / room, high * room, from, to);
  }
  const room = (axis === "x" ? 0.03 : 0.08) * (high - low) || 0.05 * Math.abs(high) || 0.5;
  const floor = low === 0 && panel.rows.some(({ look }) => look === "bars") ? 0 : low - room;
  return new Scale(floor, high + room, from, to);
}

function drawChart(canvas, panel) {
  const { context, width, height } = fitted(canvas);
  const turned = panel.names && Math.max(...panel.names.map((n) => n.length)) > 5 &&
    widthOf(panel.names) * panel.names.length > width - 82;
  const box = [72, 8, width - 10, height - (turned ? 78 : 42)];
  const x = scaleOf(panel, "x", box[0], box[2], turned);
  const y = scaleOf(panel, "y", box[3], box[1]);
  const targets = [];
  context.save();
  context.beginPath();
  context.rect(box[0], box[1], box[2] - box[0], box[3] - box[1]);
  context.clip();
  for (const [words, from, to] of panel.shaded ?? []) {
    context.fillStyle = css("--grid");
    context.fillRect(x.at(from), box[1], x.at(to) - x.at(from), box[3] - box[1]);
    context.font = SMALL;
    context.fillStyle = css("--quiet");
    context.fillText(words, x.at(from) + 5, box[3] - 6);
  }
  drawLines(context, panel, box, x, y);
  for (const row of panel.rows) drawRow(context, row, x, y, targets, panel);
  context.restore();
  drawAxes(context, {
    x, y, box, xWords: symbol(panel.x), yWords: symbol(panel.y), turned, apart: [70, 34],
    wordsAt: turned ? 58 : 22,
  });
  return targets;
}

function drawLines(context, panel, box, x, y) {
  context.strokeStyle = css("--quiet");
  context.lineWidth = 1;
  context.setLineDash([5, 3]);
  const line = (...points) => {
    context.beginPath();
    context.moveTo(points[0], points[1]);
    context.lineTo(points[2], points[3]);
    context.stroke();
  };
  context.fillStyle = css("--quiet");
  context.font = SMALL;
  for (const [words, value] of panel.levels ?? []) {
    line(box[0], y.at(value), box[2], y.at(value));
    context.fillText(words, box[0] + 5, y.at(value) - 4);
  }
  for (const [words, value] of panel.places ?? []) {
    line(x.at(value), box[1], x.at(value), box[3]);
    context.fillText(words, x.at(value) + 4, box[1] + 11);
  }
  context.setLineDash([]);
}

function drawRow(context, row, x, y, targets, panel) {
  const colour = shade(row.colour);
  const points = row.x.map((v, i) => [v, row.y[i], row.error?.[i] ?? 0])
    .filter(([a, b]) => a !== null && b !== null)
    .map(([a, b, error]) => ({ a, b, error, px: x.at(a), py: y.at(b) }));
  context.strokeStyle = context.fillStyle = colour;
  context.lineWidth = row.look === "ring" ? 2.2 : 1.5;
  DRAWN[row.look](context, points, y, x.step ?? 12);
  if (row.look === "band") return;
  for (const { a, b, error, px, py } of points) {
    const where = panel.names ? panel.names[a] : `${symbol(panel.x)} ${quantity(a)}`;
    targets.push({ x: px, y: py, text: `${row.words}, ${where}: ${quantity(b, error)}` });
  }
}

function path(context, points) {
  context.beginPath();
  points.forEach(({ px, py }, i) => context[i ? "lineTo" : "moveTo"](px, py));
  context.stroke();
}

function band(context, points, y) {
  if (!points.some(({ error }) => error)) return;
  context.globalAlpha = 0.22;
  context.beginPath();
  for (const { px, b, error } of points) context.lineTo(px, y.at(b + error));
  for (const { px, b, error } of [...points].reverse()) context.lineTo(px, y.at(b - error));
  context.fill();
  context.globalAlpha = 1;
}

function errorBars(context, points, y) {
  context.lineWidth = 1.1;
  for (const { px, b, error } of points) {
    if (!error) continue;
    context.beginPath();
    context.moveTo(px, y.at(b - error));
    context.lineTo(px, y.at(b + error));
    context.stroke();
  }
}

function discs(context, points, radius, filled) {
  for (const { px, py } of points) {
    context.beginPath();
    context.arc(px, py, radius, 0, 2 * Math.PI);
    context[filled ? "fill" : "stroke"]();
  }
}

const DRAWN = {
  line(context, points, y) {
    band(context, points, y);
    path(context, points);
    if (points.length < 40) discs(context, points, 2.2, true);
  },
  dashes(context, points, y) {
    band(context, points, y);
    context.setLineDash([6, 4]);
    path(context, points);
    context.setLineDash([]);
  },
  dots(context, points, y) {
    errorBars(context, points, y);
    discs(context, points, points.length > 150 ? 1.6 : 3, true);
  },
  crosses(context, points) {
    context.globalAlpha = 0.7;
    for (const { px, py } of points) context.fillRect(px - 1.5, py - 1.5, 3, 3);
    context.globalAlpha = 1;
  },
  ring(context, points) { discs(context, points, 6, false); },
  band,
  bars(context, points, y, step) {
    context.globalAlpha = 0.45;
    const half = Math.max(Math.min(0.35 * step, 26), 1.5);
    for (const { px, py } of points) context.fillRect(px - half, py, 2 * half, y.at(0) - py);
    context.globalAlpha = 1;
    errorBars(context, points, y);
  },
};

// The range of a matrix: about zero where it has signs.
function rangeOf({ layers, signed }) {
  const values = layers[0].values.flat().filter((v) => v !== null);
  const high = Math.max(...values, signed ? 0 : -Infinity);
  const low = Math.min(...values, signed ? 0 : Infinity);
  const reach = Math.max(Math.abs(low), Math.abs(high)) || 1;
  if (signed) return [-reach, reach];
  return [low, high > low ? high : low + 1];
}

function drawMatrix(canvas, panel) {
  const { context, width, height } = fitted(canvas);
  const { rows, columns, layers, what = "" } = panel;
  if (!layers.length) return [];
  const size = Math.min(width - 72 - 10, height - 8 - 46);
  const box = [72, 8, 72 + size, 8 + size];
  const [w, h] = [size / columns.length, size / rows.length];
  const range = rangeOf(panel);
  const colours = ramp(panel.signed ? "sign" : "amount");
  const targets = [];
  rows.forEach((row, i) => columns.forEach((column, j) => {
    const value = layers[0].values[i][j];
    const [x, y] = [box[0] + j * w, box[1] + i * h];
    if (value !== null) {
      const [r, g, b] = colours[place(value, range, "")];
      context.fillStyle = `rgb(${r} ${g} ${b})`;
      context.fillRect(x, y, w + 0.5, h + 0.5);
      if (rows.length <= WRITTEN) {
        context.fillStyle = 0.3 * r + 0.6 * g + 0.1 * b > 128 ? "#000" : "#fff";
        context.font = "12px system-ui, sans-serif";
        context.textAlign = "center";
        context.textBaseline = "middle";
        context.fillText(typeset(String(Number(value.toPrecision(2)))), x + w / 2, y + h / 2);
      }
    }
    const told = layers.map(({ words, values, error }) =>
      `${words} ${quantity(values[i][j], error?.[i][j])}`);
    const names = `${what} ${row} and ${column}`.trim();
    targets.push({ x: x + w / 2, y: y + h / 2, half: Math.min(w, h) / 2, text: `${names}: ${told.join(", ")}` });
  }));
  drawAxes(context, {
    x: new NameScale(columns, box[0], box[2], widthOf(columns)),
    y: new NameScale(rows, box[1], box[3], 14), box,
    xWords: what, apart: [40, 16],
  });
  return targets;
}

// What the colours and lines of a panel mean, as elements.
export function panelLegend(panel) {
  if (panel.type === "matrix") {
    if (!panel.layers.length) return [element("span", {}, "No numbers here.")];
    const kind = panel.signed ? "sign" : "amount";
    return [colourBar(kind, rangeOf(panel), panel.layers[0].words)];
  }
  const shapes = { line: "line", dashes: "dashes", dots: "dot", crosses: "dot", ring: "ring",
    band: "pale", bars: "pale" };
  return panel.rows.map(({ words, look, colour }) => swatch(shade(colour), words, shapes[look]));
}
