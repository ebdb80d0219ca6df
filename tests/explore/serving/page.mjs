// Unit tests of the modules of the page, run by `node --test`; the folder of the
// modules is in PAGE.
import assert from "node:assert/strict";
import { test } from "node:test";

const load = (name) => import(`${process.env.PAGE}/${name}`);
const { cellOf, Embedded } = await load("source.js");
const { digits, symbol, axisWords, duration, typeset } = await load("text.js");
const { plainText, Scale, tickText, within } = await load("plot.js");
const { place, ramp, themedImage } = await load("colours.js");
const { unpacked } = await load("packed.js");
const { nearest, SheetView, Slider } = await load("sheet.js");

test("a cell holds its lower edge", () => {
  const edges = [0, 1, 2.5, 4];
  assert.deepEqual([0, 0.99, 1, 2.49, 3.9].map((v) => cellOf(edges, v)), [0, 0, 1, 1, 2]);
});

test("scales and their inverses", () => {
  for (const scale of [new Scale(-2, 6, 100, 500), new Scale(-9, 3, 400, 20, 0.1)]) {
    for (const share of [0, 0.2, 0.7, 1]) {
      const pixel = scale.from + share * (scale.to - scale.from);
      assert.ok(Math.abs(scale.at(scale.value(pixel)) - pixel) < 1e-6);
    }
  }
});

test("words below an axis are not cut at the right", () => {
  const written = [];
  const context = { font: "12px x", canvas: { clientWidth: 100 },
    measureText: (text) => ({ width: 8 * text.length }), fillText: (text, x) => written.push([text, x]) };
  for (const x of [50, 98]) plainText(context, "1.55", x, 0);
  assert.deepEqual(written, [["1.55", 50], ["1.55", 84]]);
});

test("ticks lie inside, a few of them", () => {
  for (const [low, high] of [[0, 1], [1.2, 1.2001], [-3e5, 2e6], [0.97, 1.43]]) {
    const ticks = new Scale(low, high, 0, 600).ticks(6);
    assert.ok(ticks.length >= 2 && ticks.length <= 13, `${low} ${high}: ${ticks}`);
    const room = (high - low) * 1e-9;
    assert.ok(ticks.every((t) => t >= low - room && t <= high + room));
    const texts = ticks.map((t) => tickText(t, high - low));
    assert.equal(new Set(texts).size, texts.length);
  }
  assert.deepEqual(new Scale(-0.43, 0.42, 0, 120).ticks(2), [-0.4, -0.2, 0, 0.2, 0.4]);
  assert.deepEqual(new Scale(0.6, 8, 200, 0, 0.1).ticks(4), [1, 2, 5]);
});

test("a window stays within its limits", () => {
  assert.deepEqual(within([0.2, 0.4], [0, 1]), [0.2, 0.4]);
  const near = (got, wanted) => got.forEach((v, i) => assert.ok(Math.abs(v - wanted[i]) < 1e-12));
  near(within([-0.5, 0.1], [0, 1]), [0, 0.6]);
  near(within([-5, 5], [0, 1]), [0, 1]);
  const [low, high] = within([0.5, 0.5], [0, 1]);
  assert.ok(high > low);
});

test("numbers in words", () => {
  assert.equal(digits(1.23456789, 0.01), "1.23457");
  assert.equal(symbol("λ_12"), "λ₁₂");
  assert.equal(typeset("x = -1, 0-1 test, λ_1 = -0.5"), "x = −1, 0-1 test, λ₁ = −0.5");
  assert.deepEqual([3e7, 1e-5, 1e6, -2e-7, 0.5].map((v) => tickText(v, 1)),
    ["3·10⁷", "10⁻⁵", "10⁶", "−2·10⁻⁷", "0.5"]);
  assert.equal(axisWords({ words: "inverse temperature", symbol: "β", unit: "" }),
    "inverse temperature β");
  assert.equal(duration(125), "2 min 5 s");
});

test("colours of values", () => {
  assert.equal(ramp("sign").length, 256);
  assert.deepEqual([-1, 0, 1, 9].map((v) => place(v, [-1, 1], "sign")), [0, 128, 255, 255]);
  assert.equal(place(10, [1, 100], "logarithm"), 128);
});

test("messages are unpacked", () => {
  const header = JSON.stringify({ low: 1, arrays: { a: { type: "float32", shape: [2], place: 0, size: 2 } } });
  const text = new TextEncoder().encode(header.padEnd(Math.ceil((header.length + 4) / 8) * 8 - 4));
  const buffer = new ArrayBuffer(4 + text.length + 8);
  new DataView(buffer).setUint32(0, text.length, true);
  new Uint8Array(buffer).set(text, 4);
  new Float32Array(buffer, 4 + text.length).set([0.5, -2]);
  const { low, arrays } = unpacked(buffer);
  assert.equal(low, 1);
  assert.deepEqual([...arrays.a.data], [0.5, -2]);
});

test("the nearest target, if any is near", () => {
  const targets = [{ x: 5, y: 10, w: 0, h: 0, behind: 0 }, { x: 50, y: 10, w: 10, h: 20, behind: 0 },
    { x: 5, y: 12, w: 25, h: 0, behind: 8 }];
  assert.equal(nearest(targets, [14, 8], [2, 1]), 0);
  assert.equal(nearest(targets, [115, 25], [2, 1]), 1);
  assert.equal(nearest(targets, [50, 80], [2, 1]), -1);
});

test("an image has the colours of the theme: ink turns, areas keep theirs", () => {
  globalThis.document = { documentElement: { dataset: { theme: "dark" } } };
  const colours = { "--panel": "#1b1e24", "--ink": "#eceef1" };
  globalThis.getComputedStyle = () => ({ getPropertyValue: (name) => colours[name] });
  const drawn = themedImage('<svg a="b"><path d="M 0 0" style="fill: #0072b2; stroke: #000000"/>' +
    '<path style="fill: #ffffff"/><use x="1" style="fill: #00224e"/></svg>');
  assert.ok(drawn.startsWith('<svg fill="#eceef1" a="b"><path d="M 0 0" style="fill: rgb(0 114 178); stroke: rgb(236 238 241)"/>'));
  assert.ok(drawn.includes('<path style="fill: rgb(27 30 36)"/>'));
  const [red, green, blue] = drawn.match(/<use x="1" style="fill: rgb\((\d+) (\d+) (\d+)\)/).slice(1).map(Number);
  assert.ok(red > 90 && green > 100 && blue > 120, "a marker stands out");
});

test("a slider takes stored values that are near, and others between", () => {
  const slider = new Slider([10, 100, 1000]);
  assert.ok(Math.abs(slider.value(500) - 100) < 1e-9);
  assert.equal(slider.stored(505), 1);
  assert.equal(slider.stored(540), -1);
  assert.ok(Math.abs(slider.step(slider.value(123)) - 123) < 1e-9);
  const alone = new Slider([30]);
  assert.deepEqual([alone.low, alone.high], [7.5, 120]);
  assert.equal(new Slider([0, 2]).value(500), 1);
});

test("an exported page counts as its data says", async () => {
  const edges = Float64Array.from([0, 1, 2, 3, 4]);
  const samples = Uint16Array.from([0, 65534, 65535, 32000, 0, 0, 65534, 65535]);
  const held = new Embedded({
    file: { axis: { name: "a", low: 0, high: 4 }, clouds: [{ name: "section" }] },
    ranges: { section: [-1, 1] }, width: 16,
    arrays: {
      edges: { data: edges }, samples_section: { data: samples, shape: [4, 2] },
      phase: { data: Int8Array.from([3, 1, 1, 2]), shape: [4, 1] },
      least: { data: Float32Array.from([1, -1, NaN, 2]), shape: [4, 1] },
      error: { data: Float32Array.from([0.5, 0, 0, 0]), shape: [4, 1] },
      period: { data: Int32Array.from([0, 44, 1, 1]), shape: [4, 1] },
    },
    points: [0.5, 1.5, 2.5].map((value) => ({ values: [{ name: "a", value }] })),
  });
  const asked = { low: 0, high: 4, bottom: -1.01, top: 1.01, columns: 4, rows: 2 };
  const { arrays } = await held.density(asked);
  assert.deepEqual([...arrays.section.data], [1, 1, 1, 0, 2, 0, 0, 1]);
  const wide = await held.density({ ...asked, columns: 2 });
  assert.deepEqual([...wide.arrays.section.data], [2, 1, 2, 1]);
  assert.equal(wide.width, 32);
  const strips = await held.strips({ low: 0, high: 4, columns: 1 });
  assert.deepEqual(["phase", "least", "largest"].map((n) => [...strips.arrays[n].data]),
    [[1], [-1], [2]]);
  const single = await held.strips(asked);
  assert.deepEqual([...single.arrays.period.data], [0, 44, 1, 1]);
  assert.ok(Number.isNaN(single.arrays.least.data[2]) && single.arrays.error.data[0] === 0.5);
  const { values: [{ value }] } = await held.point({ values: { a: 1.9 } });
  assert.equal(value, 1.5);
});

test("of an exported plane the nearest point is told, in shares of its axes", async () => {
  const place = (a, b) => ({ values: [{ name: "a", value: a }, { name: "b", value: b }] });
  const held = new Embedded({
    file: { axes: [{ name: "a", low: 0, high: 1 }, { name: "b", low: 0, high: 100 }] },
    points: [place(0, 0), place(1, 0), place(0, 100), place(1, 100)],
  });
  const found = await held.point({ values: { a: 0.4, b: 60 } });
  assert.deepEqual(found, place(0, 100));
});

test("a choice that another picture lacks is its first value there", () => {
  const page = (count) => ({ name: "page", values: [...Array(count).keys()], first: 0 });
  const drawings = [{ name: "planes", choices: [page(3)] }, { name: "borders", choices: [page(1)] }];
  const view = new SheetView({ drawings }, 0, { computes: true });
  view.read(new URLSearchParams("picture=planes&c.page=2"));
  assert.deepEqual(view.chosen, { page: 2 });
  view.picture = "borders";
  assert.deepEqual([view.chosen, view.isBetween], [{ page: 0 }, false]);
});
