// A scan of one parameter: samples as a density, the phase ribbon, the exponents.

import { LINES, PHASES, css, dark } from "./colours.js";
import { SHARES, drawOverlays, drawShares, overlayLegend, sharesOf } from "./overlays.js";
import { Scale, drawAxes, fitted, swatch } from "./plot.js";
import { cellOf } from "./source.js";
import { axisWords, element, symbol } from "./text.js";

const RIBBON = 13;
const GAP = 9;
const DOT = 3;  // pixels of a sample that stands alone

export class LineView {
  constructor(file, number, source, base, over) {
    Object.assign(this, { file, number, source, base, over, rows: [], overlays: [] });
    this.limits = {
      x: [file.axis.low, file.axis.high], y: [file.shown.low, file.shown.high],
    };
    this.window = { x: [...this.limits.x], y: [...this.limits.y] };
    this.variable = file.starts.length > 1 ? "all" : "0";
  }

  shows(start) { return this.variable === "all" || this.variable === String(start); }

  get names() { return [this.file.axis.name]; }

  layout() {
    const { clientWidth: width, clientHeight: height } = this.base;
    const [left, right, top, bottom] = [64, width - 12, 10, height - 42];
    const has = this.file.exponents > 0;
    const ribbon = has ? RIBBON * Math.min(this.file.starts.length, 4) : 0;
    const shares = sharesOf(this.overlays).length ? SHARES + GAP : 0;
    const usable = bottom - top - shares - (has ? ribbon + 2 * GAP : 0);
    const middle = top + Math.round(usable * (!has ? 1 : this.file.production ? 0.55 : 0.66));
    const below = middle + shares;
    const last = this.file.production ? bottom - Math.round(usable * 0.17) : bottom;
    return {
      cloud: [left, top, right, middle],
      shares: [left, middle + GAP, right, middle + shares],
      ribbon: [left, below + GAP, right, below + GAP + ribbon],
      exponents: [left, below + ribbon + 2 * GAP, right, last - (last < bottom ? GAP : 0)],
      production: [left, last, right, bottom],
    };
  }

  panel() {
    const { cloud } = this.layout();
    const { x, y } = this.window;
    return {
      box: cloud, x: new Scale(...x, cloud[0], cloud[2]), y: new Scale(...y, cloud[3], cloud[1]),
    };
  }

  async load(signal) {
    const { cloud } = this.layout();
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const { x: [low, high], y: [bottom, top] } = this.window;
    const columns = Math.min(Math.max(Math.round((cloud[2] - cloud[0]) * ratio), 8), 4096);
    const rows = Math.min(Math.max(Math.round((cloud[3] - cloud[1]) * ratio), 8), 4096);
    const asked = { file: this.number, low, high, columns };
    const [density, strips] = await Promise.all([
      this.source.density({ ...asked, bottom, top, rows }, signal),
      this.file.exponents ? this.source.strips(asked, signal) : null,
    ]);
    Object.assign(this, { density, strips });
    this.draw();
  }

  draw() {
    const { context, ratio } = fitted(this.base);
    const boxes = this.layout();
    const { x, y } = this.panel();
    if (this.density) this.drawDensity(boxes.cloud, ratio, x, y);
    this.drawComputed(context, boxes, x, y);
    drawOverlays(context, boxes.cloud, x, y, this.overlays);
    for (const layer of sharesOf(this.overlays).slice(0, 1)) drawShares(context, boxes.shares, x, layer);
    const has = this.file.exponents > 0;
    const words = axisWords(this.file.axis);
    drawAxes(context, {
      x, y, box: boxes.cloud, yWords: axisWords(this.file.shown), xWords: words, xLabels: !has,
    });
    if (has && this.strips) {
      this.drawRibbon(context, boxes.ribbon, x);
      this.drawExponents(context, boxes.exponents, x, this.file.production ? "" : words);
      if (this.file.production) this.drawProduction(context, boxes.production, x, words);
    }
  }

  // Ink by the number of samples of a point in a cell; one sample can be seen.  Where
  // points lie further apart than a dot, every sample is a dot in its middle.
  drawDensity(box, ratio, x, y) {
    const [left, top, right, bottom] = box.map((v) => Math.round(v * ratio));
    const [w, h] = [right - left, bottom - top];
    if (w < 1 || h < 1) return;
    const { arrays, width, bottom: low, top: high } = this.density;
    const edges = arrays.edges.data;
    const image = new ImageData(w, h);
    const pixels = image.data;
    const columns = new Int32Array(2 * w).fill(-1);
    const reach = Math.floor((DOT * ratio) / 2);
    const between = (ratio * (x.at(edges[edges.length - 1]) - x.at(edges[0]))) / (edges.length - 1);
    const dotted = between > 4 * reach;
    for (let i = 0; i < w; i += 1) {
      const from = x.value((left + i) / ratio);
      const to = x.value((left + i + 1) / ratio);
      if (to < edges[0] || from >= edges[edges.length - 1]) continue;
      if (dotted) {
        const cell = cellOf(edges, Math.max(from, edges[0]));
        const middle = ratio * x.at((edges[cell] + edges[cell + 1]) / 2) - left;
        if (Math.abs(i + 0.5 - middle) > reach + 0.5) continue;
      }
      columns[2 * i] = cellOf(edges, Math.max(from, edges[0]));
      columns[2 * i + 1] = Math.max(cellOf(edges, to * (1 - 1e-15)), columns[2 * i]);
    }
    const names = this.file.clouds.map(({ name }) => name).reverse()
      .filter((name) => !name.includes("_") || this.shows(name.split("_")[1]));
    const alone = new Set(this.file.clouds.map(({ words }) => words)).size === 1;
    for (const name of names) {
      const { data, shape: [, rows] } = arrays[name];
      const front = name.startsWith("section") || alone;
      const [red, green, blue] = css(front ? "--ink-dots" : "--pale-dots").split(" ").map(Number);
      const even = (width * (front ? 128 : 64)) / rows;
      const rowAt = (j) => Math.floor(((y.value((top + j + 0.5) / ratio) - low) / (high - low)) * rows);
      for (let j = 0; j < h; j += 1) {
        const first = Math.max(rowAt(dotted ? j + reach : j), 0);
        const last = Math.min(rowAt(dotted ? j - reach : j), rows - 1);
        if (first > last) continue;
        for (let i = 0; i < w; i += 1) {
          let count = 0;
          for (let c = columns[2 * i]; c >= 0 && c <= columns[2 * i + 1]; c += 1) {
            for (let row = first; row <= last; row += 1) {
              count = Math.max(count, data[c * rows + row]);
            }
          }
          if (!count) continue;
          const ink = 0.2 + (0.8 * count) / (count + 1.5 * even);
          const at = 4 * (j * w + i);
          const under = pixels[at + 3] / 255;
          const whole = ink + under * (1 - ink);
          const mixed = (c, k) => (c * ink + pixels[at + k] * under * (1 - ink)) / whole;
          pixels[at] = mixed(red, 0);
          pixels[at + 1] = mixed(green, 1);
          pixels[at + 2] = mixed(blue, 2);
          pixels[at + 3] = 255 * whole;
        }
      }
    }
    this.base.getContext("2d").putImageData(image, left, top);
  }

  // Samples and phases of points that were computed here.
  drawComputed(context, { cloud }, x, y) {
    context.save();
    context.beginPath();
    context.rect(cloud[0], cloud[1], cloud[2] - cloud[0], cloud[3] - cloud[1]);
    context.clip();
    for (const { values, section, strobe, phase } of this.rows) {
      const at = x.at(values[this.file.axis.name]);
      context.fillStyle = `rgb(${css("--pale-dots")})`;
      for (const value of strobe) context.fillRect(at - 0.6, y.at(value) - 0.6, 1.2, 1.2);
      context.fillStyle = this.colour(phase);
      for (const value of section) context.fillRect(at - 0.8, y.at(value) - 0.8, 1.6, 1.6);
    }
    context.restore();
  }

  colour(phase) {
    if (phase === undefined || phase < 0) return css("--quiet");
    const hex = PHASES[phase];
    return dark() && phase === 7 ? "#ffffff" : hex;
  }

  drawRibbon(context, [left, top, right, bottom], x) {
    const { edges, phase } = this.strips.arrays;
    if (!phase) return;
    const [count, starts] = phase.shape;
    const height = (bottom - top) / starts;
    for (let i = 0; i < count; i += 1) {
      const from = Math.floor(Math.max(x.at(edges.data[i]), left));
      const to = Math.ceil(Math.min(x.at(edges.data[i + 1]), right));
      if (to <= left || from >= right) continue;
      for (let s = 0; s < starts; s += 1) {
        const code = phase.data[i * starts + s];
        if (code < 0) continue;
        context.fillStyle = this.colour(code);
        context.fillRect(from, top + s * height, to - from, height);
      }
    }
    context.fillStyle = css("--ink");
    context.textAlign = "right";
    context.textBaseline = "middle";
    if (starts > 1 && starts < 5) this.file.starts.forEach((name, s) => {
      context.fillText(name, left - 5, top + (s + 0.5) * height);
    });
    for (const { values, phase: code } of this.rows) {
      context.fillStyle = this.colour(code);
      context.fillRect(x.at(values[this.file.axis.name]) - 1, top, 2, bottom - top);
    }
    context.strokeStyle = css("--quiet");
    context.strokeRect(left + 0.5, top + 0.5, right - left - 1, bottom - top - 1);
  }

  drawExponents(context, box, x, words) {
    const { least, largest, error } = this.strips.arrays;
    if (!least) return;
    const [count, k] = least.shape;
    let [low, high, first] = [0, 0, 0];
    const each = k / this.file.starts.length;
    for (let i = 0; i < count * k; i += 1) {
      if (!this.shows(Math.floor((i % k) / each))) continue;
      if (Number.isFinite(least.data[i])) low = Math.min(low, least.data[i]);
      if (Number.isFinite(largest.data[i])) high = Math.max(high, largest.data[i]);
      if (i % each === 0 && Number.isFinite(least.data[i])) {
        first = Math.max(first, Math.abs(largest.data[i]));
      }
    }
    const theta = Math.max(high, first / 20, 1e-6) / 2;
    const margin = 1.25;
    const y = new Scale(low * margin - theta / 4, high * margin + theta / 2, box[3], box[1],
      -low > 6 * theta ? theta : 0);
    const colours = LINES[dark() ? "dark" : "light"];
    this.drawLines(context, box, x, y, { least, largest, error, colours });
    for (const { values, exponents } of this.rows) {
      exponents?.forEach((value, j) => {
        if (typeof value !== "number") return;
        const [px, py] = [x.at(values[this.file.axis.name]), y.at(value)];
        if (px < box[0] || px > box[2]) return;
        context.fillStyle = colours[j % colours.length];
        context.fillRect(px - 1.5, py - 1.5, 3, 3);
      });
    }
    const { symbol: sign, unit } = this.file.exponent;
    drawAxes(context, {
      x, y, box, xWords: words, yWords: `${symbol(sign).replace("_i", "ᵢ")} (${unit})`,
      zero: true, xLabels: Boolean(words),
    });
    context.fillStyle = css("--ink");
  }

  drawProduction(context, box, x, words) {
    const {
      production_least: least, production_largest: largest, production_error: error,
    } = this.strips.arrays;
    const high = largest.data.reduce((a, b) => (b > a ? b : a), 1e-12);
    const y = new Scale(-0.05 * high, 1.15 * high, box[3], box[1]);
    const colours = [css("--ink")];
    this.drawLines(context, box, x, y, { least, largest, error, colours });
    drawAxes(context, {
      x, y, box, xWords: words, yWords: symbol(this.file.production.symbol), zero: true,
      apart: [90, 24],
    });
  }

  // Lines with their errors where a column is a point, else from least to largest.
  drawLines(context, box, x, y, { least, largest, error, colours }) {
    const { edges, phase, period } = this.strips.arrays;
    const [count, k] = least.shape;
    context.save();
    context.beginPath();
    context.rect(box[0], box[1], box[2] - box[0], box[3] - box[1]);
    context.clip();
    const middle = (i) => x.at((edges.data[i] + edges.data[i + 1]) / 2);
    const starts = phase.shape[1];
    const each = k / starts;
    for (let j = k - 1; j >= 0; j -= 1) {
      const s = Math.floor(j / each);
      if (!this.shows(s)) continue;
      context.strokeStyle = context.fillStyle = colours[(j % each) % colours.length];
      context.setLineDash(s && this.variable === "all" ? [5, 3] : []);
      const at = (i) => least.data[i * k + j];
      if (error) {
        const broken = (i) => i === 0 || !Number.isFinite(at(i)) || !Number.isFinite(at(i - 1)) ||
          [phase, period].some(({ data }) => data[i * starts + s] !== data[(i - 1) * starts + s]);
        context.globalAlpha = 0.3;
        for (let i = 0; i < count; i += 1) {
          const wrong = error.data[i * k + j];
          if (!Number.isFinite(at(i)) || !(wrong > 0)) continue;
          const wide = Math.max(x.at(edges.data[i + 1]) - x.at(edges.data[i]), 1);
          const upper = y.at(at(i) + wrong);
          context.fillRect(middle(i) - wide / 2, upper, wide, Math.max(y.at(at(i) - wrong) - upper, 0.5));
        }
        context.globalAlpha = 1;
        context.lineWidth = 1.3;
        context.beginPath();
        for (let i = 0; i < count; i += 1) {
          if (!Number.isFinite(at(i))) continue;
          const [px, py] = [middle(i), y.at(at(i))];
          context[broken(i) ? "moveTo" : "lineTo"](px, py);
          const alone = broken(i) && (i === count - 1 || broken(i + 1));
          if (alone) context.fillRect(px - DOT / 2, py - DOT / 2, DOT, DOT);
        }
        context.stroke();
      } else {
        for (let i = 0; i < count; i += 1) {
          if (!Number.isFinite(at(i))) continue;
          const [px, upper] = [x.at(edges.data[i]), y.at(largest.data[i * k + j])];
          context.fillRect(px, upper - 0.6, Math.max(x.at(edges.data[i + 1]) - px, 1),
            Math.max(y.at(at(i)) - upper, 0) + 1.2);
        }
      }
    }
    context.restore();
  }

  // The crosshair, the chosen point and a box.
  drawOver({ hover, chosen, box }) {
    const { context } = fitted(this.over);
    const boxes = this.layout();
    const { x } = this.panel();
    const bottom = this.file.exponents ? boxes.production[3] : boxes.cloud[3];
    const mark = (value, colour, dash) => {
      const at = x.at(value);
      if (at < boxes.cloud[0] || at > boxes.cloud[2]) return;
      context.strokeStyle = colour;
      context.setLineDash(dash);
      context.beginPath();
      context.moveTo(at, boxes.cloud[1]);
      context.lineTo(at, bottom);
      context.stroke();
    };
    context.lineWidth = 1.2;
    if (hover) mark(hover[this.names[0]], css("--quiet"), [3, 3]);
    if (chosen) mark(chosen[this.names[0]], css("--cross"), []);
    if (box) {
      const [low, high] = box[this.names[0]].map((v) => x.at(v));
      context.fillStyle = css("--accent");
      context.globalAlpha = 0.1;
      context.fillRect(low, boxes.cloud[1], high - low, bottom - boxes.cloud[1]);
    }
  }

  // Values of the parameters at a place in pixels.
  values([px]) {
    const { x } = this.panel();
    const value = Math.min(Math.max(x.value(px), this.limits.x[0]), this.limits.x[1]);
    return { [this.names[0]]: value };
  }

  inside([px, py]) {
    const { cloud, production } = this.layout();
    const bottom = this.file.exponents ? production[3] : cloud[3];
    return px >= cloud[0] && px <= cloud[2] && py >= cloud[1] && py <= bottom;
  }

  // Values of the point so many points further, among those in view.
  next(values, step) {
    const edges = this.density.arrays.edges.data;
    const cell = Math.min(Math.max(cellOf(edges, values[this.names[0]]) + step, 0), edges.length - 2);
    return { [this.names[0]]: (edges[cell] + edges[cell + 1]) / 2 };
  }

  ranges(from, to) {
    const [a, b] = [this.values(from), this.values(to)].map((v) => v[this.names[0]]);
    return { [this.names[0]]: [Math.min(a, b), Math.max(a, b)] };
  }

  legend() {
    const entries = [];
    const found = new Set(this.strips?.arrays.phase?.data ?? []);
    this.file.phases.forEach((name, code) => {
      if (found.has(code)) entries.push(swatch(this.colour(code), name));
    });
    const colours = LINES[dark() ? "dark" : "light"];
    for (let j = 0; j < this.file.exponents; j += 1) {
      entries.push(swatch(colours[j % colours.length], symbol(`λ_${j + 1}`), "line"));
    }
    const [first, ...others] = this.file.starts;
    if (others.length) {
      const all = this.density?.width > 1 ? `λ: of ${this.file.starts.join(", ")}` :
        `λ: ${first} solid, ${others.join(", ")} dashed`;
      const one = `λ and samples: ${this.file.starts[this.variable]}`;
      entries.push(element("span", {}, this.variable === "all" ? all : one));
    }
    const kinds = new Map(this.file.clouds.map(({ name, words }) => [words, name]));
    for (const [words, name] of kinds.size > 1 ? kinds : []) {
      const shade = css(name.startsWith("section") ? "--ink-dots" : "--pale-dots");
      entries.push(swatch(`rgb(${shade})`, words, "dot"));
    }
    const { width } = this.density ?? {};
    if (width > 1) entries.push(element("span", {}, `a column: ${width} points`));
    return [...entries, ...overlayLegend(this.overlays)];
  }
}
