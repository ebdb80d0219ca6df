// Elements and texts.  Whatever comes from a file is set as text, never as markup.

export const byId = (name) => document.getElementById(name);

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((x) => x !== null && x !== undefined));
  return made;
}

// A number to as many digits as tell it apart over a span.
export function digits(value, span) {
  if (!Number.isFinite(value)) return "";
  const places = Math.max(0, Math.min(12, Math.ceil(-Math.log10(Math.abs(span) || 1)) + 3));
  return String(Number(value.toFixed(places)));
}

// A whole number as characters that stand high.
export function raise(number) {
  return [...number].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("");
}

// A symbol such as λ_1 or m^{o,SE}_1 as characters.
export function symbol(text) {
  const low = "₀₁₂₃₄₅₆₇₈₉";
  return text.replace(/_\{?(\d+)\}?/g, (_, n) => [...n].map((d) => low[d]).join(""))
    .replace("_KY", "ᴋʏ").replace(/\^\{?o,SE\}?/g, "ᵒˢᴱ").replace(/[{}]/g, "");
}

// A sentence or a number in words: symbols, and minus signs before digits.
export function typeset(text) {
  return symbol(text).replace(/(^|[\s=(])-(?=[\d∞])/g, "$1−");
}

// Words of which parts stand low (`_{...}`) or high (`^{...}`).
export function nodes(words) {
  const tags = { "_{": "sub", "^{": "sup" };
  return words.split(/([_^]\{[^{}]*\})/).filter(Boolean).map((part) => {
    const tag = tags[part.slice(0, 2)];
    return tag ? element(tag, {}, part.slice(2, -1)) : part;
  });
}

export function axisWords({ words, symbol: sign, unit }) {
  const named = words && words !== sign && !words.includes("_") ? `${words} ` : "";
  return `${named}${symbol(sign)}${unit ? ` (${unit})` : ""}`;
}

export function save(name, blob) {
  const address = URL.createObjectURL(blob);
  const link = element("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

export function duration(seconds) {
  if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}
