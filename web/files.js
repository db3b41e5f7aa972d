// The files of a model folder: arrays of .safetensors and .npy files, in the byte order of every browser.

const TYPES = {
  F32: Float32Array, F16: Uint16Array, I8: Int8Array, BOOL: Uint8Array, I32: Int32Array, I64: BigInt64Array,
};
const NPY_TYPES = { "<u8": BigUint64Array, "<u4": Uint32Array };

// The arrays of a .safetensors file by name: { shape, type, data }; `data` are typed arrays, float16 as 16 bits each.
export function safetensors(buffer, name) {
  const nHeader = buffer.byteLength < 8 ? NaN : Number(new DataView(buffer).getBigUint64(0, true));
  if (!(8 + nHeader <= buffer.byteLength)) throw new Error(`${name}: cut short or no .safetensors file; copy it again`);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, nHeader)));
  const arrays = {};
  for (const [key, { dtype, shape, data_offsets: [begin, end] }] of Object.entries(header)) {
    if (key === "__metadata__") continue;
    const Type = TYPES[dtype];
    if (!Type) throw new Error(`${name}: ${key} has numbers of type ${dtype}; expected ${Object.keys(TYPES).join(", ")}`);
    arrays[key] = { shape, type: dtype, data: arrayAt(Type, buffer, 8 + nHeader + begin, end - begin, name) };
  }
  return arrays;
}

// The array of a .npy file with one axis.
export function npy(buffer, name) {
  const bytes = new Uint8Array(buffer, 0, Math.min(10, buffer.byteLength));
  if (String.fromCharCode(...bytes.subarray(1, 6)) !== "NUMPY") throw new Error(`${name}: no .npy file; copy it again`);
  const isLong = bytes[6] > 1, view = new DataView(buffer);
  const begin = isLong ? 12 : 10, nHeader = isLong ? view.getUint32(8, true) : view.getUint16(8, true);
  const header = new TextDecoder("latin1").decode(new Uint8Array(buffer, begin, nHeader));
  const Type = NPY_TYPES[/'descr': '([^']*)'/.exec(header)?.[1]], n = Number(/'shape': \((\d+),\)/.exec(header)?.[1]);
  if (!Type || !(n >= 0)) throw new Error(`${name}: expected one row of ${Object.keys(NPY_TYPES).join(" or ")}: ${header}`);
  return arrayAt(Type, buffer, begin + nHeader, n * Type.BYTES_PER_ELEMENT, name);
}

function arrayAt(Type, buffer, begin, nBytes, name) {
  if (begin + nBytes > buffer.byteLength) throw new Error(`${name}: cut short; copy it again`);
  const isAligned = begin % Type.BYTES_PER_ELEMENT === 0;
  return isAligned
    ? new Type(buffer, begin, nBytes / Type.BYTES_PER_ELEMENT)
    : new Type(buffer.slice(begin, begin + nBytes));
}
