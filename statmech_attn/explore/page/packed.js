// Messages of a header and arrays, as explore/files.py packs them.

const KINDS = {
  float64: Float64Array, float32: Float32Array, uint32: Uint32Array, int32: Int32Array,
  uint16: Uint16Array, int16: Int16Array, uint8: Uint8Array, int8: Int8Array,
};

// The header with its arrays by name: data (a typed array) and shape.
export function unpacked(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const first = 4 + length;
  const arrays = {};
  for (const [name, { type, shape, place, size }] of Object.entries(header.arrays)) {
    arrays[name] = { data: new KINDS[type](buffer, first + place, size), shape };
  }
  return { ...header, arrays };
}
