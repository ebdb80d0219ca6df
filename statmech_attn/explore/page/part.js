// A part of a scan: a finer study of it, to download or to compute here.

import { byId, digits, duration, element, save, symbol } from "./text.js";

const POINTS = { line: 100, plane: 12 };  // along each axis, to begin with
const PAUSE = 300;  // milliseconds between two looks at a run

export class PartPanel {
  constructor(source, redraw) {
    Object.assign(this, { source, redraw });
    byId("download").addEventListener("click", () => this.download());
    byId("compute").addEventListener("click", () => this.compute());
    byId("progress").querySelector("button").addEventListener("click", () => this.cancel());
    byId("ranges").addEventListener("submit", (event) => event.preventDefault());
  }

  offer(view, ranges) {
    this.view = view;
    const axes = view.file.axes ?? [view.file.axis];
    const fields = axes.flatMap(({ name, symbol: sign }) => {
      const [low, high] = ranges[name];
      const count = POINTS[view.file.view];
      return [
        [name, "start", `${symbol(sign)} from`, digits(low, high - low)],
        [name, "stop", `${symbol(sign)} to`, digits(high, high - low)],
        [name, "num", "points", count],
      ];
    });
    byId("ranges").replaceChildren(...fields.flatMap(([name, key, words, value]) => [
      element("label", { for: `part-${name}-${key}` }, words),
      element("input", {
        id: `part-${name}-${key}`, type: "number", value: String(value), required: true,
        step: key === "num" ? 1 : "any", min: key === "num" ? 1 : null,
      }),
    ]));
    byId("part").hidden = false;
    byId("part").scrollIntoView({ block: "nearest" });
    this.say("");
  }

  asked() {
    const names = this.view.names;
    const of = (name, key) => byId(`part-${name}-${key}`).valueAsNumber;
    const ranges = Object.fromEntries(names.map((name) => [
      name, { start: of(name, "start"), stop: of(name, "stop"), num: of(name, "num") },
    ]));
    return { file: this.view.number, ranges };
  }

  async download() {
    await this.guarded(async () => {
      const { study } = await this.source.ask("study", this.asked());
      const stem = this.view.file.name.replace(/\.[^.]*$/, "");
      save(`${stem}_part.toml`, new Blob([study], { type: "application/toml" }));
      this.say(`Run it with: statmech-attn run ${stem}_part.toml -o ${stem}_part.h5`);
    });
  }

  async compute() {
    await this.guarded(async () => {
      this.say("Compiling …");
      const view = this.view;
      let told = await this.source.ask("run", this.asked());
      this.say("");
      this.number = told.number;
      byId("progress").hidden = false;
      view.rows = [];
      for (;;) {
        view.rows.push(...told.rows);
        if (told.rows.length) this.redraw(view);
        this.show(told);
        if (told.state !== "running") break;
        await new Promise((resolve) => setTimeout(resolve, PAUSE));
        told = await this.source.ask("job", { number: this.number, since: view.rows.length });
      }
    });
    byId("progress").hidden = true;
  }

  show({ state, done, total, left, error, rows }) {
    byId("progress").querySelector("progress").value = done / total;
    const time = left === null ? "" : `, about ${duration(left)} left`;
    byId("progress").querySelector("span").textContent =
      `${Math.floor(done)} of ${total} points${time}`;
    if (state === "finished") this.say(`${total} points have been computed and are drawn.`);
    if (state === "cancelled") this.say("Cancelled; the points that are finished stay.");
    if (state === "failed") this.say(error);
    return rows;
  }

  async cancel() {
    await this.guarded(() => this.source.ask("cancel", { number: this.number }));
  }

  async guarded(act) {
    try {
      await act();
    } catch (error) {
      this.say(error.message);
    }
  }

  say(text) {
    byId("part-message").textContent = text;
  }
}
