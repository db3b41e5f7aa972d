// The memory of the compiled runtime: arrays and C structures that it reads by address.
//
// Addresses have 4 bytes in WebAssembly; `long` is int64_t, `real` is double, `pointer` is any address. A list of fields
// is a structure, and a list inside it is a structure of its own, aligned as C aligns it.

const field = (size, write) => (value) => ({ size, align: size, write: (view, at) => write(view, at, value) });

export const long = field(8, (view, at, value) => view.setBigInt64(at, BigInt(value), true));
export const real = field(8, (view, at, value) => view.setFloat64(at, value, true));
export const pointer = field(4, (view, at, value) => view.setUint32(at, value, true));

function up(n, to) {
  return Math.ceil(n / to) * to;
}

// What C makes of a structure: its size and alignment, and each number of it with its place.
function laidOut(fields) {
  let size = 0, align = 1;
  const placed = [];
  for (const each of fields) {
    const own = Array.isArray(each) ? laidOut(each) : { ...each, placed: [[0, each]] };
    size = up(size, own.align);
    for (const [at, number] of own.placed) placed.push([size + at, number]);
    size += own.size;
    align = Math.max(align, own.align);
  }
  return { size: up(size, align), align, placed };
}

export class Memory {
  // `exports` are those of the compiled runtime.
  constructor(exports) {
    this.exports = exports;
  }

  // The address of n bytes with anything in them, to be given to `free` or kept for ever.
  allocate(nBytes) {
    const address = this.exports.malloc(Math.max(1, nBytes)) >>> 0;
    if (!address) throw new Error(`the browser gave no memory for ${nBytes} bytes; close other pages and try again`);
    return address;
  }

  free(address) {
    if (address) this.exports.free(address);
  }

  // The address of a copy of a typed array.
  put(array) {
    const address = this.allocate(array.byteLength);
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    new Uint8Array(this.exports.memory.buffer).set(bytes, address);
    return address;
  }

  // n numbers at an address, as a typed array; it goes stale as soon as anything is allocated.
  view(Type, address, n) {
    return new Type(this.exports.memory.buffer, address, n);
  }

  // The address of a structure with these fields.
  struct(fields) {
    const { size, placed } = laidOut(fields);
    const view = new DataView(new ArrayBuffer(size));
    for (const [at, number] of placed) number.write(view, at);
    return this.put(new Uint8Array(view.buffer));
  }

  // What `use` makes of the addresses of copies of typed arrays, which are freed afterwards; null stays 0.
  withCopies(arrays, use) {
    const addresses = arrays.map((array) => (array ? this.put(array) : 0));
    try {
      return use(...addresses);
    } finally {
      addresses.forEach((address) => this.free(address));
    }
  }
}
