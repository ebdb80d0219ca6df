// The chosen point: its verdict in the file, and what is computed on the spot.

import { LINES, PHASES, dark } from "./colours.js";
import { drawSmall } from "./plot.js";
import { byId, element, symbol, typeset } from "./text.js";

// A verdict as elements.
function shown(told, heading) {
  const parts = [];
  const place = told.values.map(({ symbol: sign, text }) => `${symbol(sign)} = ${text}`).join(", ");
  const mark = element("span", { class: "mark" });
  if (told.phase >= 0) mark.style.background = PHASES[told.phase];
  const words = told.words ? ` ${told.words}` : "";
  const period = told.period ? `, period ${told.period}` : "";
  parts.push(element("p", { class: "value" }, told.words ? mark : null, `${place}:${words}${period}`));
  parts.push(element("p", { class: "sentence" }, typeset(told.sentence)));
  for (const sentence of told.starts ?? []) {
    parts.push(element("p", { class: "sentence quiet" }, typeset(sentence)));
  }
  return [...parts, numbers(told, heading)];
}

// Exponents and other numbers of a verdict as a table.
function numbers(told, heading) {
  const rows = (told.exponents ?? []).map(({ value, text }, j) =>
    [symbol(`λ_${j + 1}`), value === null ? "" : text]).filter(([, text]) => text);
  const body = [...rows, ...(told.rows ?? [])].map(([name, value]) => element("tr", {},
    element("th", { scope: "row" }, name), element("td", { class: "number" }, typeset(value))));
  const unit = told.exponent_unit ? `, exponents in ${told.exponent_unit}` : "";
  return element("table", { "aria-label": `${heading}${unit}` }, element("tbody", {}, ...body));
}

// What was computed here: in short where it is what the file says.
function compared(told, stored, seconds) {
  const same = told.phase === stored.phase && told.period === stored.period &&
    told.values.every(({ value }, i) => value === stored.values[i].value);
  const time = element("p", { class: "quiet" }, `Computed here in ${seconds} s.`);
  if (!same) return [...shown(told, "Computed here"), time];
  const leading = told.exponents?.length
    ? ` λ₁ = ${typeset(told.exponents[0].text)} ${told.exponent_unit}` : "";
  return [
    element("p", {}, `Computed here in ${seconds} s, with the same verdict:${leading}.`),
    element("details", {}, element("summary", {}, "Its numbers"), numbers(told, "Computed here")),
  ];
}

const FEW = 20;  // samples of a section that make no picture
const drawings = [];  // of the small pictures, to be drawn again in other colours

export function redrawSmall() {
  for (const draw of drawings) draw();
}

function small(caption, tall, make) {
  const canvas = element("canvas", { role: "img", "aria-label": caption });
  const made = element("figure", tall ? { class: "tall" } : {}, canvas,
    element("figcaption", {}, caption));
  drawings.push(() => canvas.isConnected && drawSmall(canvas, make()));
  return made;
}

export class PointPanel {
  constructor(source) {
    this.source = source;
    this.asked = 0;
    this.page = crypto.getRandomValues(new Uint32Array(1))[0];
  }

  async choose(view, values) {
    const asked = (this.asked += 1);
    const told = await this.source.point({ file: view.number, values });
    if (asked !== this.asked) return null;
    byId("verdict").replaceChildren(...shown(told, "In the file"));
    this.stored = told;
    this.offer(view, told);
    return Object.fromEntries(told.values.map(({ name, value }) => [name, value]));
  }

  // A form with the values of the point, which can be changed, and a button.
  offer(view, told) {
    const live = byId("live");
    drawings.length = 0;
    if (!this.source.computes || view.file.why) {
      live.replaceChildren(element("p", { class: "quiet" }, view.file.why ?? ""));
      return;
    }
    const inputs = told.values.map(({ name, symbol: sign, value, text }) => {
      const input = element("input", {
        id: `at-${name}`, type: "number", step: "any", required: true, value: text,
      });
      const exact = () => (input.value === text ? value : input.valueAsNumber);
      return [name, exact, element("label", { for: `at-${name}` }, `${symbol(sign)} `, input)];
    });
    const form = element("form", { class: "row", "aria-label": "Compute a point" },
      ...inputs.map(([, , label]) => label), element("button", {}, "Compute"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const values = Object.fromEntries(inputs.map(([name, exact]) => [name, exact()]));
      this.compute(view, values);
    });
    this.result = element("div", { "aria-live": "polite" });
    live.replaceChildren(form, this.result);
  }

  async compute(view, values) {
    const asked = (this.asked += 1);
    const result = this.result;
    const fresh = () => asked === this.asked && result.isConnected;
    const verdict = element("div", {}, element("p", { class: "quiet" }, "Computing … The first point waits until its programs are compiled."));
    const pictures = element("div");
    result.replaceChildren(verdict, pictures);
    drawings.length = 0;
    const question = { file: view.number, values, page: this.page };
    const began = performance.now();
    const wrong = (error) => {
      if (fresh()) verdict.replaceChildren(element("p", { class: "wrong" }, error.message));
    };
    try {
      const told = await this.source.ask("verdict", question);
      if (!fresh()) return;
      const seconds = ((performance.now() - began) / 1000).toFixed(2);
      verdict.replaceChildren(...compared(told, this.stored, seconds));
      const orbit = await this.source.ask("orbit", question);
      if (!fresh()) return;
      this.draw(pictures, view.file, orbit, told);
      const running = await this.source.ask("running", question);
      if (fresh()) this.drawRunning(pictures, running, told);
    } catch (error) {
      wrong(error);
    }
  }

  draw(holder, file, orbit, told) {
    const sign = symbol((file.shown ?? { symbol: "x" }).symbol);
    const main = () => LINES[dark() ? "dark" : "light"][0];
    const places = (list) => list.map((_, i) => i);
    const few = orbit.first.slice(0, 200);
    const { section } = told;
    const frequencies = orbit.frequency?.slice(1);
    holder.append(
      small("The orbit over time, after the transient", false, () => ({
        series: [{ x: places(few), y: few, colour: main() }], xWords: "step", yWords: sign,
      })),
      small("The plane of the two recorded coordinates", true, () => ({
        series: [{ x: orbit.first, y: orbit.second, colour: main() }],
        xWords: sign, yWords: "second coordinate", dots: true, square: true,
      })),
    );
    const [samples, words, what] = section.length > FEW
      ? [section, "The section: each sample against the one before", "sample"]
      : [orbit.first, "The return map: each step against the one before", "step"];
    holder.append(small(words, true, () => ({
      series: [{ x: samples.slice(0, -1), y: samples.slice(1), colour: main() }],
      xWords: `${sign}, ${what} n`, yWords: `${what} n + 1`, dots: true, square: true,
    })));
    if (frequencies) {
      holder.append(small("Power spectrum, powers of ten", false, () => ({
        series: [{ x: frequencies, y: orbit.power.slice(1), colour: main() }],
        xWords: "frequency (cycles per step)", yWords: "log₁₀ P", logarithmic: true,
      })));
    }
    redrawSmall();
  }

  drawRunning(holder, { running, steps }, told) {
    const colours = () => LINES[dark() ? "dark" : "light"];
    const first = running.slice(0, 2).filter((column) => column.some((v) => v !== null));
    if (!first.length) return;
    holder.append(small("Leading exponents averaged up to each step", false, () => ({
      series: first.map((y, j) => ({ x: steps, y, colour: colours()[j] })),
      xWords: "steps averaged", yWords: `λ (${told.exponent_unit})`, zero: true,
    })));
    redrawSmall();
  }
}
