// Files that are seen as figures of the package, one at a time, each an image whose panels
// tell their numbers, from the data of plotting/frame/readings.py.
// Choices are made by sliders and lists; between stored values the server computes.

import { dark, themedImage } from "./colours.js";
import { element, nodes, symbol } from "./text.js";

const NEAR = 22;  // pixels within which a number is told
const INCH = 170;  // pixels of an inch of the printed page, at most
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

// The number of the target that is nearest to pixels; -1 where none is near.
//   percent: pixels of one, across and up, in which targets have their places.
export function nearest(targets, [px, py], percent) {
  let [best, least] = [-1, NEAR];
  targets.forEach(({ x, y, w, h, behind }, i) => {
    const across = Math.max(Math.abs(x * percent[0] - px) - w * percent[0], 0);
    const up = Math.max(Math.abs(y * percent[1] - py) - h * percent[1], 0);
    const away = Math.hypot(across, up) + behind;
    if (away < least) [best, least] = [i, away];
  });
  return best;
}

export class SheetView {
  constructor(file, number, source, holder, page, changed) {
    Object.assign(this, { file, number, source, holder, page, changed });
    this.names = [];
    this.picture = file.drawings[0].name;
    this.values = {};
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
    this.panels = element("div", { id: "panels" });
    this.reading = element("p", { class: "told", "aria-live": "polite" });
    const form = element("form", { id: "choices", "aria-label": "Choices",
      onsubmit: (event) => event.preventDefault() },
      element("div", {}, element("label", { for: "picture" }, "picture"), pictures), this.controls);
    this.holder.replaceChildren(form, this.words, this.why, this.told, this.panels, this.reading);
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

  // The picture of what is chosen, computed where the file does not hold it.
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
        : await this.source.ask("figure", question);
      if (asked !== this.asked) return;
      await this.show(content);
      const seconds = ((performance.now() - began) / 1000).toFixed(2);
      this.say(solved ? `Computed here in ${seconds} s, at a point that the file does not hold.` : "");
      this.changed();
    } catch (error) {
      if (asked === this.asked) this.say(error.message);
    }
  }

  // A picture with its panels over it, and again the number that was told.
  async show(content) {
    const { image, size: [width], note, panels } = this.content = content;
    this.isDark = dark();
    const drawn = this.drawn = element("img", { alt: symbol(`${this.drawing.told} ${note}`) });
    drawn.src = URL.createObjectURL(new Blob([themedImage(image)], { type: "image/svg+xml" }));
    await drawn.decode();
    URL.revokeObjectURL(drawn.src);
    if (drawn !== this.drawn) return;
    const tells = panels.map((panel, i) => this.panel(panel, i));
    const figure = element("figure", { class: "picture" }, drawn, ...tells.map(({ over }) => over));
    figure.style.setProperty("--wide", `${INCH * width}px`);
    this.panels.replaceChildren(figure);
    this.panels.dataset.drawn = JSON.stringify([this.picture, this.chosen]);
    const [number, at] = this.at ?? [];
    this.reading.replaceChildren();
    tells[number]?.tell(at);
  }

  // The same picture in the colours of another theme.
  draw() {
    if (this.content && this.isDark !== dark()) this.show(this.content);
  }

  // What lies over a panel: it tells the number at the pointer, or the next one by a key.
  panel({ place, words, marks }, number) {
    const targets = marks.flatMap(({ places, words: parts, numbers, behind }) =>
      places.map(([x, y, w = 0, h = 0], i) => ({ x, y, w, h, behind,
        text: () => parts.map((part, k) => part + (numbers[i][k] ?? "")).join("") })));
    const ring = element("i", { hidden: true });
    const over = element("div", {
      class: "panel", tabindex: "0", role: "application", "aria-roledescription": "chart",
      "aria-label": symbol(words), "aria-describedby": "keys",
    }, ring);
    ["left", "top", "width", "height"].forEach((side, i) => { over.style[side] = `${place[i]}%`; });
    let at = -1;
    const tell = (to) => {
      at = to;
      this.at = [number, at];
      const target = targets[at];
      ring.hidden = !target;
      this.reading.replaceChildren(...nodes(target?.text() ?? ""));
      if (target) [ring.style.left, ring.style.top] = [`${target.x}%`, `${target.y}%`];
    };
    const point = ({ clientX, clientY }) => {
      const { left, top, width, height } = over.getBoundingClientRect();
      tell(nearest(targets, [clientX - left, clientY - top], [width / 100, height / 100]));
    };
    over.addEventListener("pointermove", point);
    over.addEventListener("pointerdown", point);
    over.addEventListener("keydown", (event) => {
      const along = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const down = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!(along || down) || !targets.length) return;
      event.preventDefault();
      if (along || at < 0) return tell(Math.max(0, Math.min(targets.length - 1, at + (along ?? 1))));
      const { x, y } = targets[at];  // the next one above or below it
      const far = (target) => ((target.y - y) * down > 0.1 ? 9 * Math.abs(target.x - x) + Math.abs(target.y - y) : Infinity);
      const next = targets.reduce((best, target, i) => (far(target) < far(targets[best]) ? i : best), at);
      tell(next);
    });
    return { over, tell };
  }

  say(text) {
    this.told.textContent = text;
  }
}
