// Relations: the tables of relative spans that FLAT's attention reads, made when they are first asked for; as
// runtime/relations.py and the _Described of runtime/flat_native.py have them.

const PADDING = 64; // floats behind a row of the transposed form, which vectors may read

export class Relations {
  // linear: makes a layer of weights (see flat.js); narrowed: what makes numbers of 12 bits of float32, or null where
  // attention is in float32; nChars: of the longest sentence; maxReach: of the longest word.
  constructor({ memory, config, weights, linear, narrowed, lanes }, nChars, maxReach) {
    Object.assign(this, { memory, config, narrowed, nChars, maxReach, lanes, kept: [] });
    this.isBias = config.position_score === "bias";
    this.nRows = 2 * nChars - 1;
    this.columnStep = 16 * (Math.ceil((this.nRows + PADDING) / 16) | 1);
    const { width, distances } = config, furthest = nChars - 1 + maxReach;
    const positions = Array.from({ length: 2 * furthest + 1 }, (_, k) => k - furthest + config.position_offset);
    const encoding = sinusoid(positions, width, config.sinusoid);
    const fusion = weights("encoder.fusion.weight.weight");
    this.encoded = distances.map((name, block) => {
      const own = new Float32Array(width * width), wide = width * distances.length;
      for (let r = 0; r < width; r++) own.set(fusion.subarray(r * wide + block * width, r * wide + (block + 1) * width), r * width);
      const layer = linear(own, null, width);
      const product = layer.rows(encoding);
      layer.free();
      return [name, product];
    });
    this.bias = config.fusion_bias ? weights("encoder.fusion.weight.bias") : null;
    const kind = this.isBias ? "relation_bias" : "relation_key";
    this.layers = Array.from({ length: config.n_layers }, (_, l) => linear(weights(`encoder.layers.${l}.attention.${kind}.weight`), null, width));
    const nTables = (maxReach + 2) * (maxReach + 1);
    this.tables = this.layers.map(() => this.#keep(memory.put(new Uint32Array(nTables))));
    this.made = new Set();
  }

  // Two fields of Layer in flat.h.
  fields(layer) {
    return { relation: this.tables[layer], word_relation: this.tables[layer] + 4 * (this.maxReach + 1) };
  }

  // What is missing of the tables for words of these reaches, and for characters.
  make(reaches) {
    const keys = [...new Set([0, ...reaches])];
    this.layers.forEach((_, layer) => {
      for (const key of keys) this.#set(layer, 0, key, () => this.#columns(layer, key));
      if (layer + 1 < this.layers.length)
        for (const query of new Set(reaches))
          for (const key of keys) this.#set(layer, 1 + query, key, () => this.#rowsByHead(layer, query, key));
    });
  }

  free() {
    this.kept.forEach((address) => this.memory.free(address));
    this.layers.forEach((layer) => layer.free());
  }

  #keep(address) {
    this.kept.push(address);
    return address;
  }

  #set(layer, row, key, make) {
    const place = row * (this.maxReach + 1) + key, name = `${layer}/${place}`;
    if (this.made.has(name)) return;
    const address = this.#keep(make());
    this.memory.view(Uint32Array, this.tables[layer] + 4 * place, 1)[0] = address;
    this.made.add(name);
  }

  // float32[2M - 1, D or H]: W_kR R, or a number for each head.
  #relation(layer, query, key) {
    const { width } = this.config, total = new Float32Array(this.nRows * width);
    for (const [name, encoded] of this.encoded) {
      const shift = this.maxReach + (name[0] === "t" ? query : 0) - (name[1] === "t" ? key : 0);
      for (let k = 0; k < total.length; k++) total[k] += encoded[shift * width + k];
    }
    for (let k = 0; k < total.length; k++) total[k] = Math.max(0, total[k] + (this.bias ? this.bias[k % width] : 0));
    return this.layers[layer].rows(total);
  }

  #columns(layer, key) {
    const rows = this.#relation(layer, 0, key), { words, perRow, scales } = this.narrowed ? this.#inPairs(rows) : wide(rows, this.nRows);
    const columns = new Uint32Array((perRow + (scales ? 1 : 0)) * this.columnStep);
    for (let r = 0; r < this.nRows; r++)
      for (let k = 0; k < perRow; k++) columns[k * this.columnStep + r] = words[r * perRow + k];
    if (scales) columns.set(new Uint32Array(scales.buffer), perRow * this.columnStep);
    return this.memory.put(columns);
  }

  // Two neighbouring numbers of a head in a word; the last one of an odd number has a zero beside it.
  #inPairs(rows) {
    const H = this.config.n_heads, d = rows.length / this.nRows / H, even = 2 * Math.ceil(d / 2);
    const padded = new Float32Array(this.nRows * H * even);
    for (let r = 0; r < this.nRows * H; r++) padded.set(rows.subarray(r * d, (r + 1) * d), r * even);
    const { numbers, scales } = this.narrowed(padded, H * even);
    return { ...numbers, scales };
  }

  #rowsByHead(layer, query, key) {
    const rows = this.#relation(layer, query, key), H = this.config.n_heads;
    const perHead = rows.length / this.nRows / H, padded = Math.ceil(H / this.lanes) * this.lanes;
    const out = new Float32Array(this.nRows * perHead * padded);
    for (let r = 0; r < this.nRows; r++)
      for (let h = 0; h < H; h++)
        for (let k = 0; k < perHead; k++) out[(r * perHead + k) * padded + h] = rows[(r * H + h) * perHead + k];
    return this.memory.put(out);
  }
}

function wide(rows, nRows) {
  return { words: new Uint32Array(rows.buffer), perRow: rows.length / nRows, scales: null };
}

function sinusoid(positions, width, form) {
  const half = width / 2, isInterleaved = form === "interleaved";
  const step = Math.log(10000) / (isInterleaved ? half : Math.max(1, half - 1));
  const out = new Float32Array(positions.length * width);
  positions.forEach((position, r) => {
    for (let k = 0; k < half; k++) {
      const angle = position * Math.exp(k * -step);
      out[r * width + (isInterleaved ? 2 * k : k)] = Math.sin(angle);
      out[r * width + (isInterleaved ? 2 * k + 1 : half + k)] = Math.cos(angle);
    }
  });
  return out;
}
