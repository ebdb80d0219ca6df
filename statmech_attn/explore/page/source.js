// Where data comes from: the server, or the page itself where it was exported.

import { unpacked } from "./packed.js";

export class Refusal extends Error {
  constructor(text, status) {
    super(text);
    this.status = status;
  }
}

export class Server {
  computes = true;

  async ask(name, asked = {}, signal = undefined) {
    let answer;
    try {
      answer = await fetch(`api/${name}`, {
        method: "POST", body: JSON.stringify(asked), signal,
        headers: { "Content-Type": "application/json" },
      });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refusal("The explorer does not answer; it may have been ended.", 0);
    }
    if (!answer.ok) {
      const told = await answer.json().catch(() => ({}));
      throw new Refusal(told.error || `The explorer answers ${answer.status}.`, answer.status);
    }
    const type = answer.headers.get("Content-Type");
    if (type === "application/json") return answer.json();
    if (type === "application/octet-stream") return unpacked(await answer.arrayBuffer());
    return answer.blob();
  }

  files() { return this.ask("files"); }
  density(asked, signal) { return this.ask("density", asked, signal); }
  strips(asked, signal) { return this.ask("strips", asked, signal); }
  map(asked, signal) { return this.ask("map", asked, signal); }
  point(asked, signal) { return this.ask("point", asked, signal); }
}

// The cell of a sorted list of edges that a value is in.
export function cellOf(edges, value) {
  let [low, high] = [0, edges.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (edges[middle] <= value) low = middle; else high = middle;
  }
  return low;
}

function mostFrequent(codes) {
  const counts = new Map();
  for (const code of codes) counts.set(code, (counts.get(code) ?? 0) + 1);
  return [...counts].reduce((best, entry) => (entry[1] > best[1] ? entry : best))[0];
}

// Rows of an array (rows, each), those of a column in one; numbers that are not known
// are left out where others are.
function reduced({ data, shape: [, each] }, first, stop, width, choose) {
  const columns = Math.ceil((stop - first) / width);
  const result = new data.constructor(columns * each);
  for (let at = 0; at < result.length; at += 1) {
    const begin = first + Math.floor(at / each) * width;
    const values = [];
    for (let i = begin; i < Math.min(begin + width, stop); i += 1) {
      values.push(data[i * each + (at % each)]);
    }
    const known = values.filter((value) => !Number.isNaN(value));
    result[at] = choose(known.length ? known : values);
  }
  return { data: result, shape: [columns, each] };
}

export class Embedded {
  computes = false;

  constructor(held) {
    this.held = held;
  }

  async files() {
    return { files: [this.held.file] };
  }

  // A picture, by the numbers of its choices.
  async ask(name, { name: picture, chosen }) {
    return this.held.contents[[picture, ...Object.values(chosen)].join("/")];
  }

  columns({ low, high, columns }) {
    const edges = this.held.arrays.edges.data;
    const count = edges.length - 1;
    let first = Math.min(cellOf(edges, low), count - 1);
    let stop = Math.min(cellOf(edges, high) + 1, count);
    const least = Math.ceil((stop - first) / columns);
    const width = 2 ** Math.ceil(Math.log2(Math.max(least, 1)));
    first -= first % width;
    stop = Math.max(Math.min(Math.ceil(stop / width) * width, count), first + 1);
    const chosen = [];
    for (let i = first; i < stop; i += width) chosen.push(edges[i]);
    return { first, stop, width, edges: Float64Array.from([...chosen, edges[stop]]) };
  }

  async density(asked) {
    const { first, stop, width, edges } = this.columns(asked);
    const { bottom, top, rows } = asked;
    const columns = edges.length - 1;
    const arrays = { edges: { data: edges } };
    for (const { name } of this.held.file.clouds) {
      const counts = new Uint32Array(columns * rows);
      const [low, high] = this.held.ranges[name];
      const samples = this.held.arrays[`samples_${name}`];
      const put = (column, value, count) => {
        const row = Math.floor(((value - bottom) / (top - bottom)) * rows);
        if (row >= 0 && row < rows) counts[column * rows + row] += count;
      };
      if (samples) {
        const each = samples.shape[1];
        for (let i = first; i < stop; i += 1) {
          const column = Math.floor((i - first) / width);
          for (let k = i * each; k < (i + 1) * each; k += 1) {
            const step = samples.data[k];
            if (step !== 65535) put(column, low + (step / 65534) * (high - low), 1);
          }
        }
      } else {
        this.coarse(name, first, stop, width, low, high, put);
      }
      arrays[name] = { data: counts, shape: [columns, rows] };
    }
    return { width: width * this.held.width, bottom, top, arrays };
  }

  // Counts in cells, which stand for their samples.
  coarse(name, first, stop, width, low, high, put) {
    const { data, shape: [blocks, cells] } = this.held.arrays[`counts_${name}`];
    const count = this.held.arrays.edges.data.length - 1;
    const block = 2 ** Math.ceil(Math.log2(Math.ceil(count / blocks)));
    for (let i = first; i < stop; i += Math.min(width, block)) {
      const column = Math.floor((i - first) / width);
      for (let cell = 0; cell < cells; cell += 1) {
        const found = data[Math.floor(i / block) * cells + cell];
        if (found) put(column, low + ((cell + 0.5) / cells) * (high - low), found);
      }
    }
  }

  async strips(asked) {
    const { first, stop, width, edges } = this.columns(asked);
    const { phase, period, error } = this.held.arrays;
    const arrays = { edges: { data: edges } };
    if (phase) {
      const of = (array, choose) => reduced(array, first, stop, width, choose);
      arrays.phase = of(phase, mostFrequent);
      for (const prefix of ["", "production_"]) {
        const least = this.held.arrays[`${prefix}least`];
        if (!least) continue;
        const { [`${prefix}largest`]: largest = least, [`${prefix}error`]: errors } =
          this.held.arrays;
        arrays[`${prefix}least`] = of(least, (values) => Math.min(...values));
        arrays[`${prefix}largest`] = of(largest, (values) => Math.max(...values));
        if (width === 1 && errors) arrays[`${prefix}error`] = of(errors, ([value]) => value);
      }
      if (width === 1 && error) {
        arrays.period = of(period, ([value]) => value);
      }
    }
    return { width, arrays };
  }

  async map({ variable, left, right, bottom, top, columns, rows }) {
    const { data, shape } = this.held.arrays[`map_${variable}`];
    const [least, most] = this.held.spans[variable];
    const xs = this.held.arrays.x_edges.data;
    const ys = this.held.arrays.y_edges.data;
    const values = new Float32Array(columns * rows).fill(NaN);
    for (let row = 0; row < rows; row += 1) {
      const y = bottom + ((row + 0.5) / rows) * (top - bottom);
      if (y < ys[0] || y >= ys[ys.length - 1]) continue;
      const from = cellOf(ys, y) * shape[1];
      for (let column = 0; column < columns; column += 1) {
        const x = left + ((column + 0.5) / columns) * (right - left);
        if (x >= xs[0] && x < xs[xs.length - 1]) {
          const step = data[from + cellOf(xs, x)];
          if (step < 65535) values[row * columns + column] = least + (step / 65534) * (most - least);
        }
      }
    }
    return {
      x: [left, right], y: [bottom, top], range: this.held.ranges[variable],
      arrays: { values: { data: values, shape: [rows, columns] } },
    };
  }

  // The verdict of the nearest point whose sentence is written.
  async point({ values }) {
    const { file, points } = this.held;
    const axes = file.axes ?? [file.axis];
    const away = (point) => axes.reduce((sum, { low, high }, i) => {
      const { name, value } = point.values[i];
      return sum + ((value - values[name]) / (high - low)) ** 2;
    }, 0);
    return points.reduce((best, point) => (away(point) < away(best) ? point : best));
  }
}

// The data of an exported page; none where there is a server.
export async function embedded() {
  const text = document.getElementById("data")?.textContent;
  if (!text) return null;
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Embedded(unpacked(await new Response(stream).arrayBuffer()));
}
