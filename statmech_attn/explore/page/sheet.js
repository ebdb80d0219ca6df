// Files that are seen as panels: the figures of the package, one at a time.
// Choices are made by sliders and lists; between stored values the server computes.

import { drawPanel, legendOf, nearest, scalesOf } from "./panels.js";
import { element, nodes, symbol } from "./text.js";

const MANY = 6;  // panels from which they are drawn smaller

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
    this.picture = file.drawings[0].name;
    this.values = {};
    this.drawings = [];
    this.computes = source.computes && !file.why;
  }

  get drawing() { return this.file.drawings.find(({ name }) => name === this.picture); }

  // What is chosen, where the picture that is shown offers it; its first value elsewhere.
  value({ name, values, between, first }) {
    const value = this.values[name];
    const offered = values.includes(value) || (between && this.computes && value > 0);
    return offered ? value : values[first];
  }

  // Choices that an address names.
  read(asked) {
    if (this.file.drawings.some(({ name }) => name === asked.get("picture"))) this.picture = asked.get("picture");
    for (const { name, values } of this.drawing.choices) {
      const text = asked.get(`c.${name}`);
      if (text !== null) this.values[name] = typeof values[0] === "string" ? text : Number(text);
    }
  }

  write(asked) {
    if (this.picture !== this.file.drawings[0].name) asked.set("picture", this.picture);
    for (const choice of this.drawing.choices) {
      const value = this.value(choice);
      if (value !== choice.values[choice.first]) asked.set(`c.${choice.name}`, value);
    }
  }

  // The numbers of what is chosen; of a value that is not stored none.
  get chosen() {
    const numbers = this.drawing.choices.map((choice) => [choice.name, choice.values.indexOf(this.value(choice))]);
    return Object.fromEntries(numbers.filter(([, number]) => number >= 0));
  }

  // Whether a value is chosen that the file does not hold.
  get isBetween() { return Object.keys(this.chosen).length < this.drawing.choices.length; }

  build() {
    const pictures = element("select", { id: "picture" },
      ...this.file.drawings.map(({ name, words }) => element("option", { value: name }, words)));
    pictures.value = this.picture;
    pictures.addEventListener("change", () => {
      this.picture = pictures.value;
      this.load().catch((error) => this.say(error.message));
    });
    this.controls = element("div", { class: "controls" });
    this.told = element("p", { id: "solved", role: "status" });
    this.why = element("p", { class: "quiet" });
    this.words = element("p", { class: "quiet" });
    this.legend = element("p", { class: "legend" });
    this.panels = element("div", { id: "panels" });
    this.note = element("p", { class: "quiet", id: "note" });
    const form = element("form", { id: "choices", "aria-label": "Choices",
      onsubmit: (event) => event.preventDefault() },
      element("div", {}, element("label", { for: "picture" }, "picture"), pictures), this.controls);
    this.holder.replaceChildren(form, this.words, this.why, this.told, this.legend, this.panels, this.note);
  }

  // Controls of the picture that is chosen.
  choose() {
    const { choices, told, name } = this.drawing;
    if (this.built === name) return;
    this.built = name;
    this.controls.replaceChildren(...choices.map((choice) => this.control(choice)).filter(Boolean));
    this.words.textContent = symbol(told);
    const asks = choices.some(({ between }) => between) && this.source.computes && this.file.why;
    this.why.textContent = asks ? this.file.why : "";
  }

  control(choice) {
    const { name, words, values, labels, between } = choice;
    const live = between && this.computes;
    if (values.length < 2 && !live) return null;
    const label = element("label", { for: `choice-${name}` }, words);
    if (live) return this.between(choice, label);
    if (labels.every((text, i) => Number(text) === values[i])) return this.steps(choice, label);
    const select = element("select", { id: `choice-${name}` },
      ...values.map((value, i) => element("option", { value }, symbol(labels[i]))));
    select.value = this.value(choice);
    select.addEventListener("change", () => this.set(name, values[select.selectedIndex]));
    return element("div", {}, label, select);
  }

  // A slider over the stored values.
  steps(choice, label) {
    const { name, values } = choice;
    const written = (value) => value.toLocaleString("en", { maximumSignificantDigits: 12 });
    const told = element("output", {}, written(this.value(choice)));
    const slider = element("input", {
      id: `choice-${name}`, type: "range", min: 0, max: values.length - 1, step: 1,
      value: String(values.indexOf(this.value(choice))),
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
  between(choice, label) {
    const { name, values } = choice;
    const range = new Slider(values);
    const slider = element("input", {
      id: `choice-${name}`, type: "range", min: 0, max: STEPS, step: 1,
      value: String(Math.round(range.step(this.value(choice)))),
    });
    const number = element("input", {
      type: "number", step: "any", min: 0, value: String(this.value(choice)),
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
    if (!this.panels?.isConnected) {
      this.built = null;
      this.build();
    }
    this.choose();
    const asked = (this.asked = (this.asked ?? 0) + 1);
    const { choices } = this.drawing;
    const values = Object.fromEntries(choices.filter(({ between }) => between).map((c) => [c.name, this.value(c)]));
    const question = { file: this.number, name: this.picture, chosen: this.chosen };
    const solved = this.isBetween;
    const began = performance.now();
    this.say(solved ? "Solving … The first point waits until its programs are compiled." : "");
    try {
      const content = solved
        ? await this.source.ask("solved", { ...question, values, page: this.page })
        : await this.source.ask("panels", question);
      if (asked !== this.asked) return;
      if (content.image) await this.showImage(question, content.image);
      else this.show(content);
      const seconds = ((performance.now() - began) / 1000).toFixed(2);
      this.say(solved ? `Computed here in ${seconds} s, at a point that the file does not hold.` : "");
      this.changed();
    } catch (error) {
      if (asked === this.asked) this.say(error.message);
    }
  }

  // A figure that is no panels, such as one of a plug-in, as matplotlib draws it.
  //   stored: where an exported page holds it; true where the server draws it.
  async showImage(question, stored) {
    this.content = { panels: [], legend: [], note: "" };
    this.draw();
    const image = element("img", { alt: this.drawing.told });
    image.src = stored === true
      ? URL.createObjectURL(await this.source.ask("picture", { ...question, form: "png" }))
      : `data:image/png;base64,${stored}`;
    this.panels.replaceChildren(image);
    this.panels.dataset.drawn = this.picture;
  }

  show(content) {
    const { panels } = content;
    const titles = (of) => JSON.stringify(of?.map(({ title, shape, x, y }) => [title, shape, x.words, y.words]));
    if (titles(panels) !== titles(this.content?.panels)) {
      this.drawings = panels.map((panel) => this.figure(panel));
      this.panels.replaceChildren(...this.drawings.map(({ figure }) => figure));
    }
    this.content = content;
    this.panels.classList.toggle("many", panels.length > MANY);
    panels.forEach((panel, i) => Object.assign(this.drawings[i], { panel }));
    this.draw();
    this.panels.dataset.drawn = JSON.stringify([this.picture, this.chosen]);
  }

  figure(panel) {
    const { title, shape, x, y } = panel;
    const canvas = element("canvas", {
      tabindex: "0", role: "application", "aria-roledescription": "chart",
      "aria-label": `${[title, y.words].filter(Boolean).join(", ")} against ${x.words}`,
      "aria-describedby": "keys",
    });
    const legend = element("p", { class: "legend" });
    const told = element("p", { class: "told", "aria-live": "polite" });
    const drawing = { panel, canvas, legend, told, targets: [], at: -1 };
    canvas.addEventListener("pointermove", (event) => {
      const { left, top } = canvas.getBoundingClientRect();
      this.tell(drawing, nearest(drawing.targets, [event.clientX - left, event.clientY - top]));
    });
    canvas.addEventListener("keydown", (event) => {
      const across = panel.marks.find(({ type }) => type === "cells")?.values[0].length ?? 1;
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: across, ArrowUp: -across }[event.key];
      if (!step || !drawing.targets.length) return;
      event.preventDefault();
      const last = drawing.targets.length - 1;
      this.tell(drawing, Math.max(0, Math.min(last, drawing.at + step)));
    });
    drawing.figure = element("figure", { class: `panel ${shape}` },
      title ? element("figcaption", {}, ...nodes(title)) : "", canvas, legend, told);
    return drawing;
  }

  tell(drawing, at) {
    drawing.at = at;
    drawing.told.replaceChildren(...nodes(drawing.targets[at]?.text() ?? ""));
  }

  draw() {
    if (!this.content) return;
    this.legend.replaceChildren(...legendOf(this.content.legend));
    this.note.replaceChildren(...nodes(this.content.note));
    for (const { panel, legend } of this.drawings) {  // canvases fill what these leave
      legend.replaceChildren(...scalesOf(panel), ...legendOf(panel.legend));
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
