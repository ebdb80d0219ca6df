// What other files say of a scan, drawn over it: branches, curves, sweeps, basins.

import { css } from "./colours.js";
import { swatch } from "./plot.js";

export const SHARES = 58;  // pixels of the shares of basins

const shadeOf = (colour) => (colour === "ink" ? css("--branch") : colour);

export function sharesOf(overlays) {
  return overlays.flatMap(({ layers }) => layers).filter(({ type }) => type === "shares");
}

export function drawOverlays(context, box, x, y, overlays) {
  context.save();
  context.beginPath();
  context.rect(box[0], box[1], box[2] - box[0], box[3] - box[1]);
  context.clip();
  for (const layer of overlays.flatMap(({ layers }) => layers)) {
    OVER[layer.type]?.(context, layer, x, y, box);
  }
  context.restore();
}

// Points of a layer in pixels; null where a line breaks.
function pixels(layer, x, y) {
  return layer.x.map((value, i) => (value === null || layer.y[i] === null ? null
    : [x.at(value), y.at(layer.y[i])]));
}

const OVER = {
  line(context, layer, x, y) {
    const points = pixels(layer, x, y);
    for (const [colour, width] of [[css("--panel"), 4], [shadeOf(layer.colour), 1.8]]) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.setLineDash(layer.dashed ? [6, 4] : []);
      context.beginPath();
      points.forEach((point, i) => {
        if (point) context[points[i - 1] ? "lineTo" : "moveTo"](...point);
      });
      context.stroke();
    }
    context.setLineDash([]);
  },
  marks(context, layer, x, y) {
    for (const point of pixels(layer, x, y)) {
      if (!point) continue;
      context.beginPath();
      context.arc(...point, 4.5, 0, 2 * Math.PI);
      context.fillStyle = layer.hollow ? css("--panel") : shadeOf(layer.colour);
      context.fill();
      context.strokeStyle = layer.hollow ? shadeOf(layer.colour) : css("--panel");
      context.lineWidth = 1.6;
      context.stroke();
      context.font = "12px system-ui, sans-serif";
      context.lineWidth = 3;
      context.strokeStyle = css("--panel");
      context.fillStyle = css("--ink");
      context.strokeText(layer.name, point[0] + 8, point[1] + 4);
      context.fillText(layer.name, point[0] + 8, point[1] + 4);
    }
  },
  dots(context, layer, x, y) {
    context.fillStyle = layer.colour;
    for (const point of pixels(layer, x, y)) {
      if (point) context.fillRect(point[0] - 1, point[1] - 1, 2, 2);
    }
  },
  range(context, layer, x, y, box) {
    const [from, to] = layer.x.map((value) => x.at(value));
    context.fillStyle = css("--accent");
    context.globalAlpha = 0.13;
    context.fillRect(from, box[1], to - from, box[3] - box[1]);
    context.globalAlpha = 1;
  },
};

// Shares of the starts by set, stacked in a strip of its own.
export function drawShares(context, [left, top, right, bottom], x, layer) {
  context.save();
  context.beginPath();
  context.rect(left, top, right - left, bottom - top);
  context.clip();
  for (const { x: [from, to], parts } of layer.cells) {
    for (const { share: [low, high], colour } of parts) {
      context.fillStyle = colour;
      const height = bottom - top;
      context.fillRect(x.at(from), bottom - high * height, x.at(to) - x.at(from) + 0.5,
        (high - low) * height);
    }
  }
  context.restore();
  context.strokeStyle = css("--quiet");
  context.strokeRect(left + 0.5, top + 0.5, right - left - 1, bottom - top - 1);
}

export function overlayLegend(overlays) {
  const entries = new Map();
  for (const { layers } of overlays) {
    for (const layer of layers) {
      if (layer.type === "shares") {
        for (const { set, colour, words } of layer.cells.flatMap(({ parts }) => parts)) {
          const named = words.startsWith(set) ? `starts that end ${set}` : `${set}: ${words}`;
          if (!entries.has(set)) entries.set(set, swatch(colour, named));
        }
      } else if (!entries.has(layer.words)) {
        const colour = layer.type === "range" ? css("--accent") : shadeOf(layer.colour);
        const line = layer.dashed ? "dashes" : "line";
        const shape = { line, dots: "dot", range: "pale", marks: layer.hollow ? "ring" : "dot" }[layer.type];
        entries.set(layer.words, swatch(colour, layer.words, shape));
      }
    }
  }
  return [...entries.values()];
}
