// Scales, axes and how a window of a diagram is moved.

import { css, ramp } from "./colours.js";
import { digits, element, nodes, raise, symbol } from "./text.js";

export class Scale {
  // Values low..high to pixels from..to; with theta logarithmic beyond -theta..theta.
  constructor(low, high, from, to, theta = 0) {
    Object.assign(this, { low, high, from, to, theta });
  }

  bent(value) { return this.theta ? Math.asinh(value / this.theta) : value; }

  at(value) {
    const [a, b] = [this.bent(this.low), this.bent(this.high)];
    return this.from + ((this.bent(value) - a) / (b - a)) * (this.to - this.from);
  }

  value(pixel) {
    const share = (pixel - this.from) / (this.to - this.from);
    const [a, b] = [this.bent(this.low), this.bent(this.high)];
    const bent = a + share * (b - a);
    return this.theta ? this.theta * Math.sinh(bent) : bent;
  }

  ticks(count) {
    if (this.theta) return this.bentTicks();
    const raw = (this.high - this.low) / Math.max(count, 1);
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = power * [1, 2, 5, 10].find((m) => m * power >= raw * 0.999);
    const ticks = [];
    for (let k = Math.ceil(this.low / step); k * step <= this.high * (1 + 1e-12) + 1e-300; k += 1) {
      ticks.push(k * step);
    }
    return ticks.length < 2 && count < 8 ? this.ticks(2 * count) : ticks;  // one tells no scale
  }

  // Powers of ten that are apart, from 0 outwards; where they are few, 2 and 5 of each.
  bentTicks(factors = [1]) {
    const unit = 10 ** Math.floor(Math.log10(this.theta));
    const found = [0];
    for (let power = unit; power <= Math.max(-this.low, this.high); power *= 10) {
      for (const factor of factors) found.push(factor * power, -factor * power);
    }
    const inside = found.filter((tick) => tick >= this.low && tick <= this.high);
    const apart = (t) => [0, ...inside].every((o) => o === t || Math.abs(o) < Math.abs(t) ||
      Math.abs(this.at(o) - this.at(t)) > 13);
    const ticks = inside.filter((t) => t === 0 || (apart(t) && Math.abs(this.at(t) - this.at(0)) > 13));
    return ticks.length < 3 && factors.length === 1 ? this.bentTicks([1, 2, 5]) : ticks;
  }

  text(tick) { return tickText(tick, this.theta || Math.abs(this.high - this.low)); }
}

export function tickText(value, span) {
  const size = Math.abs(value);
  if (size && (size < 1e-4 || size >= 1e6)) {
    const [front, power] = Number(value.toPrecision(4)).toExponential().split("e");
    const raised = raise(String(Number(power)));
    return (front === "1" ? `10${raised}` : `${front}·10${raised}`).replace("-", "−");
  }
  return digits(value, span).replace("-", "−");
}

// A canvas as large as its element, in device pixels; context in CSS pixels.
export function fitted(canvas) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const { clientWidth: width, clientHeight: height } = canvas;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height, ratio };
}

export const FONT = '12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif';

// Frame, ticks and words of a panel.
export function drawAxes(context, {
  x, y, box, xWords, yWords, xLabels = true, zero = false, apart = [90, 48],
}) {
  const [left, top, right, bottom] = box;
  context.save();
  context.font = FONT;
  context.strokeStyle = css("--quiet");
  context.fillStyle = css("--ink");
  context.lineWidth = 1;
  context.strokeRect(left + 0.5, top + 0.5, right - left - 1, bottom - top - 1);
  if (x) {
    const ticks = x.ticks(Math.max(2, Math.floor((right - left) / apart[0])));
    for (const tick of ticks) {
      const at = Math.round(x.at(tick)) + 0.5;
      context.beginPath();
      context.moveTo(at, bottom);
      context.lineTo(at, bottom + 4);
      context.stroke();
      if (xLabels) plainText(context, x.text(tick), at, bottom + 6);
    }
    if (xLabels && xWords) plainText(context, xWords, (left + right) / 2, bottom + 22);
  }
  if (y) {
    const ticks = y.ticks(Math.max(2, Math.floor((bottom - top) / apart[1])));
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const tick of ticks) {
      const at = Math.round(y.at(tick)) + 0.5;
      context.beginPath();
      context.moveTo(left - 4, at);
      context.lineTo(left, at);
      context.stroke();
      context.fillText(y.text(tick), left - 7, at);
    }
    if (zero && y.low < 0 && y.high > 0) {
      const at = Math.round(y.at(0)) + 0.5;
      context.globalAlpha = 0.5;
      context.beginPath();
      context.moveTo(left, at);
      context.lineTo(right, at);
      context.stroke();
      context.globalAlpha = 1;
    }
    if (yWords) {
      context.save();
      context.translate(13, (top + bottom) / 2);
      context.rotate(-Math.PI / 2);
      context.textAlign = "center";
      context.fillText(yWords, 0, 0);
      context.restore();
    }
  }
  context.restore();
}

// Text below a place, as far to the left as the canvas has room for it.
export function plainText(context, text, x, y) {
  context.textAlign = "center";
  context.textBaseline = "top";
  const room = context.canvas.clientWidth - context.measureText(text).width / 2;
  context.fillText(text, Math.min(x, room), y);
}

// An entry of a legend: a patch of colour, or line, dashes, dot or ring, and its words.
export function swatch(colour, words, shape = "") {
  const mark = element("i", { class: shape });
  mark.style.color = colour;
  return element("span", {}, mark, symbol(words));
}

// Colours between two values, as an entry of a legend.
export function colourBar(kind, [low, high], words) {
  const bar = element("canvas", { width: 256, height: 1, "aria-hidden": true });
  const context = bar.getContext("2d");
  ramp(kind).forEach((colour, i) => {
    context.fillStyle = `rgb(${colour.join(" ")})`;
    context.fillRect(i, 0, 1, 1);
  });
  const ends = [low, high].map((v) => tickText(Number(v.toPrecision(3)), high - low));
  return element("span", {}, ...nodes(words), " ", ends[0], bar, ends[1],
    kind === "logarithm" ? ", logarithmic" : "");
}

// A small picture of lines or dots in its own canvas.
export function drawSmall(canvas, { series, xWords, yWords, logarithmic, dots, zero, square }) {
  const { context, width, height } = fitted(canvas);
  const known = series.map(({ x, y, colour }) => {
    const pairs = x.map((v, i) => [v, logarithmic && y[i] !== null ? Math.log10(y[i]) : y[i]]);
    return { colour, pairs: pairs.filter(([a, b]) => a !== null && b !== null && Number.isFinite(b)) };
  });
  const all = known.flatMap(({ pairs }) => pairs);
  if (!all.length) return;
  const range = (k) => all.reduce(([a, b], p) => [Math.min(a, p[k]), Math.max(b, p[k])],
    [Infinity, -Infinity]);
  const [[x0, x1], [y0, y1]] = [range(0), range(1)];
  const pad = 0.06 * (y1 - y0) || 0.05;
  const side = dots ? 0.06 * (x1 - x0) || 0.05 : 0;
  let box = [70, 8, width - 16, height - (xWords ? 40 : 22)];
  if (square) {
    const size = Math.min(box[2] - box[0], box[3] - box[1]);
    box = [box[0], box[1], box[0] + size, box[1] + size];
  }
  const floor = logarithmic ? Math.max(y0 - pad, y1 - 18) : y0 - pad;
  const x = new Scale(x0 - side, x1 + side, box[0], box[2]);
  const y = new Scale(floor, y1 + pad, box[3], box[1]);
  context.save();
  context.beginPath();
  context.rect(box[0], box[1], box[2] - box[0], box[3] - box[1]);
  context.clip();
  for (const { colour, pairs } of known) {
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = 1.2;
    if (dots) {
      const size = pairs.length > 800 ? 1.4 : 2.6;
      for (const [a, b] of pairs) context.fillRect(x.at(a) - size / 2, y.at(b) - size / 2, size, size);
    } else {
      context.beginPath();
      pairs.forEach(([a, b], i) => context[i ? "lineTo" : "moveTo"](x.at(a), y.at(b)));
      context.stroke();
    }
  }
  context.restore();
  drawAxes(context, { x, y, box, xWords, yWords, zero, apart: [48, 20] });
}

const HELD = 4;  // pixels that a pointer moves before it drags

// Moves a window by wheel, drag, pinch and keyboard, and tells of points and boxes.
// Of `panel()`: box, x and y scales (y may be absent), and limits {x: [..], y: [..]}.
export class Navigator {
  constructor(canvas, panel, tell) {
    Object.assign(this, { canvas, panel, tell, pointers: new Map(), boxing: false });
    const on = (name, act, options) => canvas.addEventListener(name, act, options);
    on("wheel", (e) => this.wheel(e), { passive: false });
    on("pointerdown", (e) => this.down(e));
    on("pointermove", (e) => this.moved(e));
    on("pointerup", (e) => this.up(e));
    on("pointercancel", (e) => this.up(e));
    on("pointerleave", () => this.tell.hover?.(null));
    on("keydown", (e) => this.key(e));
    on("dblclick", (e) => e.preventDefault());
  }

  place(event) {
    const { left, top } = this.canvas.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  }

  // The window zoomed about a place in pixels; only along the axes that are named.
  zoom(factor, [px, py], axes = "xy") {
    const { x, y } = this.panel();
    const about = (scale, pixel) => {
      const centre = scale.value(Math.max(Math.min(pixel, Math.max(scale.from, scale.to)),
        Math.min(scale.from, scale.to)));
      return [scale.low, scale.high].map((edge) => centre + (edge - centre) * factor);
    };
    const next = { x: axes.includes("x") ? about(x, px) : [x.low, x.high] };
    if (y) next.y = axes.includes("y") ? about(y, py) : [y.low, y.high];
    this.tell.moved(next);
  }

  shift(dx, dy) {
    const { x, y } = this.panel();
    const by = (scale, pixels) => {
      const step = (pixels * (scale.high - scale.low)) / (scale.to - scale.from);
      return [scale.low - step, scale.high - step];
    };
    this.tell.moved(y ? { x: by(x, dx), y: by(y, dy) } : { x: by(x, dx) });
  }

  wheel(event) {
    event.preventDefault();
    const amount = event.deltaY * (event.deltaMode ? 30 : 1);
    const axes = event.shiftKey ? "y" : event.altKey ? "x" : this.tell.wheelAxes ?? "xy";
    this.zoom(Math.exp(Math.max(-400, Math.min(400, amount)) * 0.002), this.place(event), axes);
  }

  down(event) {
    if (event.button) return;
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, this.place(event));
    this.began = this.place(event);
    this.far = false;
    this.boxed = this.boxing || event.shiftKey;
  }

  moved(event) {
    const now = this.place(event);
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      this.tell.hover?.(now);
      return;
    }
    if (this.pointers.size === 2) {
      const [other] = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, p]) => p);
      const apart = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
      this.far = true;
      this.zoom(apart(before) / apart(now), [(now[0] + other[0]) / 2, (now[1] + other[1]) / 2]);
    } else if (this.far || Math.hypot(now[0] - this.began[0], now[1] - this.began[1]) > HELD) {
      this.far = true;
      if (this.boxed) this.tell.box?.(this.began, now, false);
      else {
        this.canvas.classList.add("held");
        this.shift(now[0] - before[0], now[1] - before[1]);
      }
    }
    this.pointers.set(event.pointerId, now);
  }

  up(event) {
    if (!this.pointers.delete(event.pointerId)) return;
    this.canvas.classList.remove("held");
    if (event.type === "pointercancel") return;
    const now = this.place(event);
    if (!this.far) this.tell.point?.(now);
    else if (this.boxed) this.tell.box?.(this.began, now, true);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { box } = this.panel();
    const middle = [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2];
    const [w, h] = [(box[2] - box[0]) / 10, (box[3] - box[1]) / 10];
    const acts = {
      ArrowLeft: () => this.shift(w, 0), ArrowRight: () => this.shift(-w, 0),
      ArrowUp: () => this.shift(0, h), ArrowDown: () => this.shift(0, -h),
      "+": () => this.zoom(0.7, middle), "=": () => this.zoom(0.7, middle),
      "-": () => this.zoom(1 / 0.7, middle), 0: () => this.tell.whole(),
      Enter: () => this.tell.enter?.(), ",": () => this.tell.next?.(-1),
      ".": () => this.tell.next?.(1), b: () => this.tell.toggleBox?.(),
    };
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  }
}

// A window kept within limits, and no narrower than 1e-9 of them.
export function within([low, high], [least, most]) {
  if (low >= least && high <= most && high - low >= (most - least) * 1e-9) return [low, high];
  const span = Math.min(Math.max(high - low, (most - least) * 1e-9), most - least);
  const middle = Math.min(Math.max((low + high) / 2, least + span / 2), most - span / 2);
  return [Math.max(middle - span / 2, least), Math.min(middle + span / 2, most)];
}
