// Colours of phases (those of the package's figures), of exponents, and of maps.

export const PHASES = [];  // filled by page.py
export const LINES = {
  light: ["#0072B2", "#D55E00", "#00795a", "#a34a7d", "#8a6100", "#3a3f47",
    "#00707f"],
  dark: ["#6bb8f2", "#ff9152", "#3fcf9f", "#e8a3c8", "#efb949", "#c9ced6",
    "#5fd0dd"],
};
const AMOUNT = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74",
  "#c3b369", "#e1cc55", "#fee838"];  // cividis
const SIGN = ["#2d004b", "#542788", "#8073ac", "#b2abd2", "#d8daeb", "#f7f7f7", "#fee0b6",
  "#fdb863", "#e08214", "#b35806", "#7f3b08"];  // PuOr, reversed

export function dark() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen) return chosen === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

export function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function rgb(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

// A colour between two.
function mix(one, other, share) {
  return one.map((x, i) => Math.round(x + share * (other[i] - x)));
}

const bright = (colour) => {
  const [r, g, b] = colour.map((x) => (x / 255 <= 0.04 ? x / 3295 : ((x / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};

// A colour of the printed page where it is drawn here: greys turn with the page, others
// are moved towards its ink until they stand out as much as the contrast says.
function themed(hex, contrast = dark() ? 4.5 : 3) {
  const colour = rgb(hex);
  const [page, ink] = [css("--panel"), css("--ink")].map(rgb);
  if (colour.every((x) => Math.abs(x - colour[0]) < 8)) {
    return `rgb(${mix(ink, page, colour[0] / 255).join(" ")})`;
  }
  for (let share = 0; share < 1; share += 0.05) {
    const moved = mix(colour, ink, share);
    const [low, high] = [bright(moved), bright(page)].sort((a, b) => a - b);
    if ((high + 0.05) / (low + 0.05) >= contrast) return `rgb(${moved.join(" ")})`;
  }
  return css("--ink");
}

// An image of a printed page in the colours of the theme; areas keep theirs but for greys.
export function themedImage(svg) {
  const own = (name, part) => (name === "path" && part === "fill" ? 1 : undefined);
  return svg.replace(/<(\w+)[^<>]* style="[^"]*"/g, (tag, name) =>
    tag.replace(/(fill|stroke): (#[0-9a-f]{6})/g, (_, part, hex) => `${part}: ${themed(hex, own(name, part))}`))
    .replace("<svg ", `<svg fill="${css("--ink")}" `);
}

// A table of 256 colours, [r, g, b] each.
export function ramp(kind) {
  const stops = (kind === "sign" ? SIGN : AMOUNT).map(rgb);
  return Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (stops.length - 1);
    const k = Math.min(Math.floor(at), stops.length - 2);
    return stops[k].map((x, c) => Math.round(x + (at - k) * (stops[k + 1][c] - x)));
  });
}

// The place of a value in a table of 256 colours.
export function place(value, [low, high], kind) {
  if (kind === "logarithm") {
    [value, low, high] = [value, low, high].map((x) => Math.log(Math.max(x, 1)));
  }
  const share = high > low ? (value - low) / (high - low) : 0;
  return Math.max(0, Math.min(255, Math.round(255 * share)));
}
