// The files of a model folder: arrays of .safetensors files, in the byte order of every browser.

import { decoded } from "./packed.js";

const TYPES = {
  F32: Float32Array, F16: Uint16Array, I8: Int8Array, BOOL: Uint8Array, I32: Int32Array, I64: BigInt64Array,
  U32: Uint32Array, U64: BigUint64Array,
};

// The arrays of a .safetensors file by name: { shape, type, data }; `data` are typed arrays, float16 as 16 bits each.
export function safetensors(buffer, name) {
  const nHeader = buffer.byteLength < 8 ? NaN : Number(new DataView(buffer).getBigUint64(0, true));
  if (!(8 + nHeader <= buffer.byteLength)) throw new Error(`${name}: cut short or no .safetensors file; copy it again`);
  const { __metadata__: more, ...header } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, nHeader)));
  const codings = JSON.parse(more?.codings ?? "{}"), arrays = {};
  for (const [key, { dtype, shape, data_offsets: [begin, end] }] of Object.entries(header)) {
    const Type = TYPES[dtype];
    if (!Type) throw new Error(`${name}: ${key} has numbers of type ${dtype}; expected ${Object.keys(TYPES).join(", ")}`);
    const at = 8 + nHeader + begin, size = Type.BYTES_PER_ELEMENT;
    if (at + end - begin > buffer.byteLength) throw new Error(`${name}: cut short; copy it again`);
    const bytes = decoded(codings[key], new Uint8Array(buffer, at, end - begin), { size, rows: shape[0] });
    arrays[key] = { shape, type: dtype, data: numbersOf(Type, bytes) };
  }
  return arrays;
}

function numbersOf(Type, bytes) {
  const isAligned = bytes.byteOffset % Type.BYTES_PER_ELEMENT === 0, own = isAligned ? bytes : bytes.slice();
  return new Type(own.buffer, own.byteOffset, own.byteLength / Type.BYTES_PER_ELEMENT);
}
