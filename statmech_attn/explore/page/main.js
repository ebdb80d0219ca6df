// The page: files, the view of one of them, and the address that holds it.

import { dark } from "./colours.js";
import { share } from "./figures.js";
import { LineView } from "./line.js";
import { PartPanel } from "./part.js";
import { PlaneView } from "./plane.js";
import { Navigator, fitted, within } from "./plot.js";
import { PointPanel, redrawSmall } from "./point.js";
import { SheetView } from "./sheet.js";
import { Server, embedded } from "./source.js";
import { axisWords, byId, element, symbol, typeset } from "./text.js";

const SETTLED = 50;  // milliseconds without a change after which data is asked for
const WATCH = 3000;  // milliseconds between two looks at the files
const KEYS = {  // help beside what is shown
  diagram: "Wheel or + and −: zoom. Drag or arrows: pan. 0: the whole scan. Click or Enter: the point. " +
    "Comma and full stop: the next points.",
  box: " Shift and drag: a box.",
  sheet: "Point at a panel to read its numbers, or move to it with Tab and press the arrows.",
};

// The values of an axis in words.
const spanOf = ({ values }) => values.map((v) => typeset(String(Number(v.toPrecision(6))))).join(" to ");

class Page {
  async start() {
    this.source = (await embedded()) ?? new Server();
    this.points = new PointPanel(this.source);
    this.part = new PartPanel(this.source, (view) => view === this.view && this.redraw());
    this.over = {};
    this.controls();
    await this.open();
    if (this.source.computes) setInterval(() => this.watch(), WATCH);
  }

  controls() {
    const on = (name, act) => byId(name).addEventListener("click", act);
    const middle = () => {
      const { box } = this.view.panel();
      return [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2];
    };
    this.navigator = new Navigator(byId("over"), () => this.view.panel(), {
      moved: (window) => this.moved(window),
      whole: () => this.moved(this.view.limits),
      hover: (place) => this.hover(place),
      point: (place) => this.view.inside(place) && this.choose(this.view.values(place)),
      enter: () => this.enter(),
      next: (step) => this.over.chosen && this.choose(this.view.next(this.over.chosen, step)),
      box: (from, to, ended) => this.box(from, to, ended),
      toggleBox: () => this.toggleBox(),
    });
    on("in", () => this.navigator.zoom(0.6, middle()));
    on("out", () => this.navigator.zoom(1 / 0.6, middle()));
    on("whole", () => this.moved(this.view.limits));
    on("box", () => this.toggleBox());
    on("close", () => this.closePart());
    on("theme", () => this.turn());
    on("link", () => this.copy());
    for (const button of document.querySelectorAll("[data-form]")) {
      button.addEventListener("click", () => share(this.source, button.dataset.form, this.view));
    }
    byId("variable").addEventListener("change", (event) => {
      this.view.variable = event.target.value;
      this.changed();
    });
    byId("message").querySelector("button").addEventListener("click", () => this.reopen());
    const observer = new ResizeObserver(() => this.redraw() || this.changed());
    for (const id of ["stage", "sheet"]) observer.observe(byId(id));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    window.addEventListener("hashchange", () => this.read());
  }

  // Wait for the files, and show the one that the address names.
  async open() {
    for (;;) {
      try {
        this.files = (await this.source.files()).files;
      } catch (error) {
        this.say(error.message);
        return;
      }
      const opening = this.files.filter(({ state }) => state === "opening");
      if (!opening.length) break;
      this.say(opening.map(({ name, done }) =>
        `${name} is being opened: ${Math.round(100 * done)} %`).join(", "));
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    this.say("");
    const tabs = this.files.map(({ name }, number) => element("button", {
      type: "button", onclick: () => this.show(number),
    }, name));
    byId("files").replaceChildren(...(tabs.length > 1 ? tabs : []));
    this.read();
  }

  // Show what the address says.
  read() {
    if (this.address === location.hash && this.view) return;
    const asked = new URLSearchParams(location.hash.slice(1));
    const number = Math.min(Number(asked.get("file")) || 0, this.files.length - 1);
    const theme = asked.get("theme");
    if (["light", "dark"].includes(theme)) document.documentElement.dataset.theme = theme;
    this.show(number, asked);
  }

  show(number, asked = new URLSearchParams()) {
    const file = this.files[number];
    byId("title").textContent = file.name;
    document.title = `${file.name} – explorer`;
    [...byId("files").children].forEach((tab, i) => tab.setAttribute("aria-current", i === number));
    if (file.state === "failed") {
      this.view = null;
      this.say(file.error, true);
      return;
    }
    this.about(file);
    this.over = {};
    const canvases = [byId("base"), byId("over")];
    for (const canvas of canvases) fitted(canvas);
    const Kind = { line: LineView, plane: PlaneView }[file.view];
    this.arrange(file, Boolean(Kind));
    if (!Kind) {
      this.showFigures(file, number, asked);
      return;
    }
    this.view = new Kind(file, number, this.source, ...canvases);
    byId("verdict").replaceChildren(element("p", { class: "quiet" },
      "Click into the diagram to see why a point has its phase."));
    byId("live").replaceChildren();
    byId("hover").textContent = "Point at the diagram to read a verdict.";
    byId("over").setAttribute("aria-label", this.described(file));
    const pair = (name) => asked.get(name)?.split(",").map(Number);
    for (const name of ["x", "y"]) {
      const range = pair(name);
      if (range?.length === 2 && range.every(Number.isFinite) && range[0] < range[1]) {
        this.view.window[name] = within(range, this.view.limits[name]);
      }
    }
    if (file.variables?.length) this.variables(file, asked.get("show"));
    const at = pair("at");
    if (at?.length === this.view.names.length && at.every(Number.isFinite)) {
      this.choose(Object.fromEntries(this.view.names.map((name, i) => [name, at[i]])));
    }
    this.hidden = new Set();
    if (this.source.computes && this.files.length > 1) {
      this.others(this.view, asked.getAll("hide")).catch((error) => this.trouble(error));
    }
    this.changed(0);
  }

  // What a view needs of the page, and what it does not.
  arrange(file, isDiagram) {
    byId("stage").hidden = !isDiagram;
    byId("sheet").hidden = isDiagram;
    byId("sheet").replaceChildren();
    for (const id of ["in", "out", "whole", "box", "hover", "legend"]) byId(id).hidden = !isDiagram;
    byId("point").hidden = !isDiagram;
    byId("part").hidden = byId("others").hidden = true;
    byId("box").hidden ||= !this.source.computes || Boolean(file.why);
    const boxed = byId("box").hidden ? "" : KEYS.box;
    byId("keys").textContent = isDiagram ? KEYS.diagram + boxed : KEYS.sheet;
    byId("keys").hidden = !isDiagram && file.view !== "sheet";
    byId("view")[isDiagram ? "append" : "prepend"](byId("keys"));  // panels may fill several screens
    byId("share").hidden = !this.source.computes || !file.pictures.length;
    byId("choice").hidden = !file.variables?.length;
  }

  // A file that is no scan: its figures.
  showFigures(file, number, asked) {
    const holder = byId("sheet");
    if (file.view !== "sheet") {
      this.view = { file, number };
      holder.append(element("p", { class: "quiet" }, "This kind of file has no pictures."));
      return;
    }
    this.view = new SheetView(file, number, this.source, holder, this.points.page, () => this.write());
    this.view.read(asked);
    this.view.load().catch((error) => this.say(error.message));
    this.write();
  }

  // What other files say of a scan, each of which may be hidden.
  async others(view, hidden) {
    const { overlays } = await this.source.ask("overlays", { file: view.number });
    if (view !== this.view || !overlays.length) return;
    this.hidden = new Set(hidden);
    const choose = () => {
      view.overlays = overlays.filter(({ name }) => !this.hidden.has(name));
      this.redraw();
      this.write();
    };
    const boxes = overlays.map(({ name }) => {
      const box = element("input", { type: "checkbox", checked: !this.hidden.has(name) });
      box.addEventListener("change", () => {
        this.hidden[box.checked ? "delete" : "add"](name);
        choose();
      });
      return element("label", {}, box, ` ${name}`);
    });
    byId("others").hidden = false;
    byId("others").querySelector("div").replaceChildren(...boxes);
    choose();
  }

  described(file) {
    const axes = file.axes ?? [file.axis];
    const ranges = axes.map((axis) => `${axisWords(axis)} from ${spanOf(axis)}`);
    return `${file.view === "line" ? "Bifurcation diagram" : "Phase diagram"} of ` +
      `${file.name}: ${ranges.join(", ")}`;
  }

  variables(file, asked) {
    const options = file.variables.map(({ name, words, symbol: sign }) =>
      element("option", { value: name }, words.startsWith(sign) ? words : `${words} ${symbol(sign)}`));
    byId("variable").replaceChildren(...options);
    if (file.variables.some(({ name }) => name === asked)) this.view.variable = asked;
    byId("variable").value = this.view.variable;
  }

  about(file) {
    const rows = [["kind", file.kind], ["finished", file.finished.slice(0, 16).replace("T", "\u00a0")], ["version", file.package]];
    const axes = file.axes ?? (file.axis ? [file.axis] : []);
    const count = file.points ?? file.axis?.points;
    if (count) rows.unshift(["points", count.toLocaleString("en")]);
    for (const axis of axes) rows.push([axisWords(axis), spanOf(axis)]);
    for (const row of file.fixed) rows.push([axisWords(row), String(Number(Number(row.value).toPrecision(8)))]);
    const body = rows.filter(([, value]) => value).map(([name, value]) =>
      element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, typeset(value))));
    byId("about").querySelector("div").replaceChildren(
      element("table", { "aria-label": "File" }, element("tbody", {}, ...body)));
    byId("about").querySelector("pre").textContent = file.study;
  }

  moved(window) {
    for (const name of ["x", "y"]) {
      if (window[name]) this.view.window[name] = within(window[name], this.view.limits[name]);
    }
    this.redraw();
    this.changed();
  }

  // Ask for the data of the window, once it has settled.
  changed(after = SETTLED) {
    clearTimeout(this.timer);
    this.aborted?.abort();
    if (!this.view?.window) return;
    this.timer = setTimeout(async () => {
      const view = this.view;
      this.aborted = new AbortController();
      try {
        await view.load(this.aborted.signal);
        if (view !== this.view) return;
        byId("legend").replaceChildren(...view.legend());
        view.drawOver(this.over);
        byId("over").dataset.drawn = JSON.stringify(view.window);
        this.write();
      } catch (error) {
        if (error.name !== "AbortError") this.trouble(error);
      }
    }, after);
  }

  redraw() {
    this.view?.draw?.();
    if (!this.view?.window) return;
    this.view.drawOver(this.over);
    byId("legend").replaceChildren(...this.view.legend());
    redrawSmall();
  }

  hover(place) {
    clearTimeout(this.hoverTimer);
    const values = place && this.view.inside(place) ? this.view.values(place) : null;
    this.over.hover = values;
    this.view.drawOver(this.over);
    if (!values) return;
    this.hoverTimer = setTimeout(async () => {
      this.hoverAborted?.abort();
      this.hoverAborted = new AbortController();
      try {
        const told = await this.source.point(
          { file: this.view.number, values }, this.hoverAborted.signal);
        byId("hover").textContent = typeset(told.sentence);
      } catch (error) {
        if (error.name !== "AbortError") byId("hover").textContent = error.message;
      }
    }, 40);
  }

  async choose(values) {
    try {
      const chosen = await this.points.choose(this.view, values);
      if (!chosen) return;
      this.over.chosen = chosen;
      this.view.drawOver(this.over);
      this.write();
      if (this.source.computes && !this.view.file.why) await this.points.compute(this.view, chosen);
    } catch (error) {
      this.trouble(error);
    }
  }

  // From the keyboard: the chosen point, or the middle of the view.
  enter() {
    const { box } = this.view.panel();
    this.choose(this.over.chosen ??
      this.view.values([(box[0] + box[2]) / 2, (box[1] + box[3]) / 2]));
  }

  box(from, to, ended) {
    if (this.view.file.why || !this.source.computes) return;
    this.over.box = this.view.ranges(from, to);
    this.view.drawOver(this.over);
    if (!ended) return;
    this.toggleBox(false);
    this.part.offer(this.view, this.over.box);
  }

  closePart() {
    byId("part").hidden = true;
    this.over.box = null;
    this.view.drawOver(this.over);
  }

  toggleBox(state = !this.navigator.boxing) {
    this.navigator.boxing = state && !byId("box").hidden;
    byId("box").setAttribute("aria-pressed", this.navigator.boxing);
  }

  turn() {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    this.redraw();
    this.write();
  }

  // The view in the address.
  write() {
    const asked = new URLSearchParams();
    const { view } = this;
    if (this.files.length > 1) asked.set("file", view.number);
    const changed = (name) => view.window[name].some((v, i) => v !== view.limits[name][i]);
    for (const name of view.window ? ["x", "y"] : []) {
      if (changed(name)) asked.set(name, view.window[name].map((v) => Number(v.toPrecision(12))));
    }
    if (view.variable) asked.set("show", view.variable);
    if (this.over.chosen) asked.set("at", view.names.map((name) => this.over.chosen[name]));
    view.write?.(asked);
    for (const name of view.window ? this.hidden : []) asked.append("hide", name);
    const { theme } = document.documentElement.dataset;
    if (theme) asked.set("theme", theme);
    const told = String(asked).replace(/%2[CF]/g, decodeURIComponent);  // as people write them
    this.address = told && `#${told}`;
    history.replaceState(null, "", this.address || location.pathname);
  }

  async copy() {
    try {
      await navigator.clipboard.writeText(location.href);
      byId("share-message").textContent = "The address of this view has been copied.";
    } catch {
      byId("share-message").textContent = location.href;
    }
  }

  say(text, reload = false) {
    const line = byId("message");
    line.hidden = !text;
    line.querySelector("span").textContent = text;
    line.querySelector("button").hidden = !reload;
  }

  trouble(error) {
    this.say(error.message, error.status === 410);
  }

  // Whether the files are as they were.
  async watch() {
    try {
      const { files } = await this.source.files();
      const gone = files.map((file) => file.gone).find(Boolean);
      if (gone) this.say(gone, true);
      else if (this.lost) this.say("");
      this.lost = false;
    } catch (error) {
      this.lost = true;
      this.say(error.message);
    }
  }

  async reopen() {
    for (const [number, file] of this.files.entries()) {
      if (file) await this.source.ask("reopen", { file: number });
    }
    this.view = null;
    await this.open();
  }
}

new Page().start();
