// Files that are seen as panels: theory of learning, comparisons, pruning.
// Choices are made by sliders and lists; between stored values the server computes.

import { drawPanel, nearest, panelLegend } from "./panels.js";
import { element, symbol, typeset } from "./text.js";

const STEPS = 1000;  // of a slider between stored values
const NEAR_STORED = 8;  // steps within which it takes the stored value
const BEYOND = 4;  // a single value is taken so many times smaller and larger
const REST = 250;  // milliseconds after which a moved slider asks

// A slider over numbers, even in their logarithms where all are positive.
export class Slider {
  constructor(values) {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const alone = low === high;
    this.values = values;
    this.low = alone && low > 0 ? low / BEYOND : low;
    this.high = alone && low > 0 ? high * BEYOND : high;
    this.even = this.low <= 0;
  }

  value(step) {
    const share = step / STEPS;
    if (this.even) return this.low + share * (this.high - this.low);
    return this.low * (this.high / this.low) ** share;
  }

  step(value) {
    const share = this.even ? (value - this.low) / (this.high - this.low)
      : Math.log(value / this.low) / Math.log(this.high / this.low);
    return STEPS * Math.max(0, Math.min(1, share));
  }

  // The number of the stored value that a step is at; -1 where there is none.
  stored(step) {
    const away = this.values.map((value) => Math.abs(this.step(value) - step));
    const least = Math.min(...away);
    return least <= NEAR_STORED ? away.indexOf(least) : -1;
  }
}

export class SheetView {
  constructor(file, number, source, holder, page, changed) {
    Object.assign(this, { file, number, source, holder, page, changed });
    this.names = [];
    this.values = Object.fromEntries(file.choices.map((c) => [c.name, c.values[c.first]]));
    this.drawings = [];
    this.computes = source.computes && !file.why;
  }

  // Choices that an address names.
  read(asked) {
    for (const { name, values, between } of this.file.choices) {
      const text = asked.get(`c.${name}`);
      if (text === null) continue;
      const value = typeof values[0] === "string" ? text : Number(text);
      if (values.includes(value) || (between && this.computes && value > 0)) this.values[name] = value;
    }
  }

  write(asked) {
    for (const { name, values, first } of this.file.choices) {
      if (this.values[name] !== values[first]) asked.set(`c.${name}`, this.values[name]);
    }
  }

  build() {
    const controls = this.file.choices.map((choice) => this.control(choice));
    this.told = element("p", { id: "solved", role: "status" });
    const asks = this.file.choices.some(({ between }) => between) && this.source.computes;
    const why = asks && this.file.why
      ? element("p", { class: "quiet" }, `Between stored values: ${this.file.why}`) : "";
    this.panels = element("div", { id: "panels" });
    this.holder.replaceChildren(
      element("form", { id: "choices", "aria-label": "Choices",
        onsubmit: (event) => event.preventDefault() }, ...controls.filter(Boolean)),
      why, this.told, this.panels);
  }

  control({ name, words, values, labels, between }) {
    const live = between && this.computes;
    if (values.length < 2 && !live) return null;
    const label = element("label", { for: `choice-${name}` }, words);
    if (typeof values[0] === "string") {
      const select = element("select", { id: `choice-${name}` },
        ...values.map((value, i) => element("option", { value }, symbol(labels[i] ?? value))));
      select.value = this.values[name];
      select.addEventListener("change", () => this.set(name, select.value));
      return element("div", {}, label, select);
    }
    return live ? this.between(name, label, values) : this.steps(name, label, values);
  }

  // A slider over the stored values.
  steps(name, label, values) {
    const written = (value) => value.toLocaleString("en", { maximumSignificantDigits: 12 });
    const told = element("output", {}, written(this.values[name]));
    const slider = element("input", {
      id: `choice-${name}`, type: "range", min: 0, max: values.length - 1, step: 1,
      value: String(values.indexOf(this.values[name])),
    });
    const describe = () => slider.setAttribute("aria-valuetext", told.textContent);
    slider.addEventListener("input", () => {
      told.textContent = written(values[slider.value]);
      describe();
      this.set(name, values[slider.value]);
    });
    describe();
    return element("div", {}, label, slider, told);
  }

  // A slider and a number that may lie between the stored values.
  between(name, label, values) {
    const range = new Slider(values);
    const slider = element("input", {
      id: `choice-${name}`, type: "range", min: 0, max: STEPS, step: 1,
      value: String(Math.round(range.step(this.values[name]))),
    });
    const number = element("input", {
      type: "number", step: "any", min: 0, value: String(this.values[name]),
      "aria-label": `${label.textContent}, as a number`,
    });
    const rounded = (value) => (name === "width" ? Math.round(value) : Number(value.toPrecision(3)));
    slider.addEventListener("input", () => {
      const stored = range.stored(Number(slider.value));
      const value = stored >= 0 ? values[stored] : rounded(range.value(Number(slider.value)));
      number.value = String(value);
      slider.setAttribute("aria-valuetext", number.value);
      this.set(name, value, REST);
    });
    number.addEventListener("change", () => {
      if (!(number.valueAsNumber > 0)) return;
      slider.value = String(Math.round(range.step(number.valueAsNumber)));
      this.set(name, number.valueAsNumber);
    });
    return element("div", {}, label, slider, number);
  }

  set(name, value, after = 40) {
    this.values[name] = value;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(), after);
  }

  // The panels of what is chosen, computed where the file does not hold it.
  async load() {
    if (!this.panels?.isConnected) this.build();
    const asked = (this.asked = (this.asked ?? 0) + 1);
    const chosen = {};
    const values = {};
    for (const { name, values: stored, between } of this.file.choices) {
      if (between) values[name] = this.values[name];
      const at = stored.indexOf(this.values[name]);
      if (at >= 0) chosen[name] = at;
    }
    const solved = Object.keys(chosen).length < this.file.choices.length;
    const began = performance.now();
    this.say(solved ? "Solving … The first point waits until its programs are compiled." : "");
    const question = { file: this.number, chosen };
    try {
      const { panels } = solved
        ? await this.source.ask("solved", { ...question, values, page: this.page })
        : await this.source.ask("panels", question);
      if (asked !== this.asked) return;
      this.show(panels);
      const seconds = ((performance.now() - began) / 1000).toFixed(2);
      this.say(solved ? `Computed here in ${seconds} s, at a point that the file does not hold.` : "");
      this.changed();
    } catch (error) {
      if (asked === this.asked) this.say(error.message);
    }
  }

  show(panels) {
    const many = panels.length !== this.drawings.length;
    if (many || panels.some(({ caption }, i) => caption !== this.drawings[i].panel.caption)) {
      this.drawings = panels.map((panel) => this.figure(panel));
      this.panels.replaceChildren(...this.drawings.map(({ figure }) => figure));
    }
    panels.forEach((panel, i) => Object.assign(this.drawings[i], { panel }));
    this.draw();
    this.panels.dataset.drawn = JSON.stringify(this.values);
  }

  figure(panel) {
    const canvas = element("canvas", {
      tabindex: "0", role: "application", "aria-roledescription": "chart",
      "aria-label": `${panel.caption}. Arrow keys tell the numbers.`,
    });
    const legend = element("p", { class: "legend" });
    const note = element("p", { class: "quiet" });
    const told = element("p", { class: "told", "aria-live": "polite" });
    const drawing = { panel, canvas, legend, note, told, targets: [], at: -1 };
    canvas.addEventListener("pointermove", (event) => {
      const { left, top } = canvas.getBoundingClientRect();
      this.tell(drawing, nearest(drawing.targets, [event.clientX - left, event.clientY - top]));
    });
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.across(drawing),
        ArrowUp: -this.across(drawing) }[event.key];
      if (!step || !drawing.targets.length) return;
      event.preventDefault();
      const last = drawing.targets.length - 1;
      this.tell(drawing, Math.max(0, Math.min(last, drawing.at + step)));
    });
    const kind = panel.type === "matrix" ? "matrix" : panel.aspect ?? "";
    drawing.figure = element("figure", { class: `panel ${kind}` },
      element("figcaption", {}, symbol(panel.caption)), canvas, legend, told, note);
    return drawing;
  }

  across({ panel }) { return panel.type === "matrix" ? panel.columns.length : 1; }

  tell(drawing, at) {
    drawing.at = at;
    drawing.told.textContent = typeset(drawing.targets[at]?.text ?? "");
  }

  draw() {
    for (const drawing of this.drawings) {  // canvases fill what these leave
      drawing.legend.replaceChildren(...panelLegend(drawing.panel));
      drawing.note.textContent = typeset(drawing.panel.note ?? "");
      drawing.note.hidden = !drawing.panel.note;
    }
    for (const drawing of this.drawings) {
      drawing.targets = drawPanel(drawing.canvas, drawing.panel);
      this.tell(drawing, drawing.at);
    }
  }

  say(text) {
    this.told.textContent = text;
  }
}
