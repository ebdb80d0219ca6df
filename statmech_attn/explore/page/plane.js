// A scan of two parameters: one of its variables as a map.

import { PHASES, css, dark, place, ramp, rgb } from "./colours.js";
import { drawOverlays, overlayLegend } from "./overlays.js";
import { Scale, colourBar, drawAxes, fitted, swatch } from "./plot.js";
import { axisWords, symbol } from "./text.js";

export class PlaneView {
  constructor(file, number, source, base, over) {
    Object.assign(this, { file, number, source, base, over, rows: [], overlays: [] });
    const [x, y] = file.axes;
    this.limits = { x: [x.low, x.high], y: [y.low, y.high] };
    this.window = { x: [...this.limits.x], y: [...this.limits.y] };
    this.variable = file.variables[0].name;
  }

  get names() { return this.file.axes.map(({ name }) => name); }

  get chosen() { return this.file.variables.find(({ name }) => name === this.variable); }

  panel() {
    const { clientWidth: width, clientHeight: height } = this.base;
    const box = [70, 10, width - 12, height - 42];
    const { x, y } = this.window;
    return { box, x: new Scale(...x, box[0], box[2]), y: new Scale(...y, box[3], box[1]) };
  }

  async load(signal) {
    const { box } = this.panel();
    const { x: [left, right], y: [bottom, top] } = this.window;
    const size = (a, b) => Math.min(Math.max(Math.round(b - a), 8), 2048);
    this.map = await this.source.map({
      file: this.number, variable: this.variable, left, right, bottom, top,
      columns: size(box[0], box[2]), rows: size(box[1], box[3]),
    }, signal);
    this.map.variable = this.variable;
    this.draw();
  }

  colour(value, variable = this.variable) {
    const { colours } = this.file.variables.find(({ name }) => name === variable);
    if (colours === "phase") {
      const code = Math.round(value);
      return rgb(dark() && code === 7 ? "#ffffff" : PHASES[code]);
    }
    this.ramps ??= {};
    this.ramps[colours] ??= ramp(colours);
    return this.ramps[colours][place(value, this.map.range, colours)];
  }

  draw() {
    const { context } = fitted(this.base);
    const { box, x, y } = this.panel();
    if (this.map) this.drawMap(context, box, x, y);
    this.drawComputed(context, box, x, y);
    drawOverlays(context, box, x, y, this.overlays);
    const [across, up] = this.file.axes;
    drawAxes(context, { x, y, box, xWords: axisWords(across), yWords: axisWords(up) });
  }

  drawMap(context, box, x, y) {
    const { values: { data, shape: [rows, columns] } } = this.map.arrays;
    const image = new ImageData(columns, rows);
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        const value = data[row * columns + column];
        if (Number.isNaN(value)) continue;
        const at = 4 * ((rows - 1 - row) * columns + column);
        const [r, g, b] = this.colour(value, this.map.variable);
        image.data.set([r, g, b, 255], at);
      }
    }
    const sheet = new OffscreenCanvas(columns, rows);
    sheet.getContext("2d").putImageData(image, 0, 0);
    context.save();
    context.beginPath();
    context.rect(box[0], box[1], box[2] - box[0], box[3] - box[1]);
    context.clip();
    context.imageSmoothingEnabled = false;
    const [left, right] = this.map.x.map((v) => x.at(v));
    const [bottom, top] = this.map.y.map((v) => y.at(v));
    context.drawImage(sheet, left, top, right - left, bottom - top);
    context.restore();
  }

  drawComputed(context, box, x, y) {
    const [across, up] = this.names;
    for (const { values, phase, exponents, period } of this.rows) {
      const shown = { phase, period };
      exponents?.forEach((value, j) => { shown[`lyapunov_${j + 1}`] = value; });
      const value = shown[this.variable];
      if (typeof value !== "number" || value < 0 && this.variable === "phase") continue;
      const [px, py] = [x.at(values[across]), y.at(values[up])];
      if (px < box[0] || px > box[2] || py < box[1] || py > box[3]) continue;
      context.fillStyle = `rgb(${this.colour(value).join(" ")})`;
      context.fillRect(px - 2.5, py - 2.5, 5, 5);
      context.strokeStyle = css("--ink");
      context.lineWidth = 0.5;
      context.strokeRect(px - 2.5, py - 2.5, 5, 5);
    }
  }

  drawOver({ hover, chosen, box: part }) {
    const { context } = fitted(this.over);
    const { box, x, y } = this.panel();
    const cross = (values, colour) => {
      const [px, py] = [x.at(values[this.names[0]]), y.at(values[this.names[1]])];
      if (px < box[0] || px > box[2] || py < box[1] || py > box[3]) return;
      for (const [width, shade] of [[4, css("--panel")], [1.6, colour]]) {
        context.lineWidth = width;
        context.strokeStyle = shade;
        context.beginPath();
        context.arc(px, py, 7, 0, 2 * Math.PI);
        context.stroke();
      }
    };
    if (hover) cross(hover, css("--ink"));
    if (chosen) cross(chosen, css("--cross"));
    if (part) {
      const [a, b] = part[this.names[0]].map((v) => x.at(v));
      const [c, d] = part[this.names[1]].map((v) => y.at(v));
      context.lineWidth = 2;
      context.strokeStyle = css("--cross");
      context.strokeRect(a, d, b - a, c - d);
    }
  }

  values([px, py]) {
    const { x, y } = this.panel();
    const clamp = (v, [low, high]) => Math.min(Math.max(v, low), high);
    return {
      [this.names[0]]: clamp(x.value(px), this.limits.x),
      [this.names[1]]: clamp(y.value(py), this.limits.y),
    };
  }

  inside([px, py]) {
    const { box } = this.panel();
    return px >= box[0] && px <= box[2] && py >= box[1] && py <= box[3];
  }

  next(values, step) {
    const { x } = this.panel();
    const name = this.names[0];
    return { ...values, [name]: x.value(x.at(values[name]) + 3 * step) };
  }

  ranges(from, to) {
    const [a, b] = [this.values(from), this.values(to)];
    return Object.fromEntries(
      this.names.map((n) => [n, [Math.min(a[n], b[n]), Math.max(a[n], b[n])]]),
    );
  }

  legend() {
    const { colours } = this.chosen;
    if (colours === "phase") {
      const found = new Set(this.map?.arrays.values.data.map(Math.round) ?? []);
      const known = [...this.file.phases.entries()].filter(([code]) => found.has(code));
      const entries = known.map(([code, name]) =>
        swatch(`rgb(${this.colour(code, "phase").join(" ")})`, name));
      return [...entries, ...overlayLegend(this.overlays)];
    }
    if (!this.map || this.map.variable !== this.variable) return overlayLegend(this.overlays);
    const { symbol: sign, unit } = this.chosen;
    const words = `${sign}${unit ? ` (${unit})` : ""}`;
    return [colourBar(colours, this.map.range, symbol(words)), ...overlayLegend(this.overlays)];
  }
}
