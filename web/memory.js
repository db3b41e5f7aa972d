// The memory of the compiled runtime: arrays and C structures that it reads by address.
//
// A structure is filled by the names of its fields: the runtime itself says which there are, and where (layout.h).

const WRITE = {
  int32: (view, at, value) => view.setInt32(at, Number(value), true),
  int64: (view, at, value) => view.setBigInt64(at, BigInt(Number(value)), true),
  float64: (view, at, value) => view.setFloat64(at, value, true),
};
const writeAddress = (view, at, value) => view.setUint32(at, value ?? 0, true); // of 4 bytes in WebAssembly
const REBUILT = "cige.wasm is of another build than the scripts beside it; build the folder again";

export class Memory {
  // `exports` are those of the compiled runtime.
  constructor(exports) {
    this.exports = exports;
    this.constants = {};
    this.structs = {};
    for (let at = exports.layout_of_structs(); ; at += 20) {
      const [of, name, type] = this.view(Uint32Array, at, 3), [offset, size] = this.view(Int32Array, at + 12, 2);
      if (!of) break;
      if (!type) this.constants[this.text(of)] = offset;
      else if (!name) this.structs[this.text(of)] = { size, fields: new Map() };
      else this.structs[this.text(of)].fields.set(this.text(name), { type: this.text(type), offset });
    }
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

  // The text, of ASCII, that ends with a zero at an address; null at 0.
  text(address) {
    const bytes = new Uint8Array(this.exports.memory.buffer);
    return address ? String.fromCharCode(...bytes.subarray(address, bytes.indexOf(0, address))) : null;
  }

  // The address of structures of one kind, each of whose fields has a value: a number or truth, an address, or an object for
  // a structure in it, of which null leaves zeros.
  struct(name, ...given) {
    const { size } = this.structs[name], view = new DataView(new ArrayBuffer(size * given.length));
    given.forEach((values, k) => this.#fill(view, k * size, name, values));
    return this.put(new Uint8Array(view.buffer));
  }

  #fill(view, at, name, values) {
    const { fields } = this.structs[name], odd = Object.keys(values).filter((key) => !fields.has(key));
    for (const [key, { type, offset }] of fields) {
      if (!(key in values)) odd.push(key);
      else if (!(type in this.structs)) (WRITE[type] ?? writeAddress)(view, at + offset, values[key]);
      else if (values[key]) this.#fill(view, at + offset, type, values[key]);
    }
    if (odd.length) throw new Error(`struct ${name}: ${odd.join(", ")}: not filled or not there; ${REBUILT}`);
  }

  // The fields of a structure at an address: numbers, texts and addresses.
  read(name, address) {
    const view = new DataView(this.exports.memory.buffer, address), found = {};
    for (const [key, { type, offset }] of this.structs[name].fields)
      found[key] = {
        int32: () => view.getInt32(offset, true),
        int64: () => Number(view.getBigInt64(offset, true)),
        float64: () => view.getFloat64(offset, true),
        text: () => this.text(view.getUint32(offset, true)),
      }[type]?.() ?? view.getUint32(offset, true);
    return found;
  }

  // The address of the structure Model with these parts, which the runtime can read; raises an Error that names a field that
  // it cannot.
  model(parts) {
    const none = Object.fromEntries([...this.structs.Model.fields.keys()].map((key) => [key, null]));
    const address = this.struct("Model", { ...none, ...parts }), problem = this.allocate(this.structs.Problem.size);
    if (this.exports.check_model(address, problem)) {
      const { part, number, inner, field, given, least, most } = this.read("Problem", problem);
      const path = [part + (number >= 0 ? `[${number}]` : ""), inner, field].filter(Boolean).join(".");
      const expected = most > least ? `${least} to ${most}` : least;
      throw new Error(`the runtime cannot read this model: ${path} is ${Number.isNaN(given) ? "missing" : `${given}; expected ${expected}`}`);
    }
    this.free(problem);
    return address;
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
