// Flat: the weights of a FLAT model in the form that flat.h reads, as runtime/flat_weights.py makes them in Python.

import { Relations } from "./relations.js";

const FIRST_CHARS = 64, FIRST_REACH = 15; // of the first tables of relations
export const FLOAT32 = "FLOAT32", INT16 = "INT16"; // of product.h: what weights are kept as
const MOST_INT16 = 2047; // so that sums of 512 products stay below 2^31
const N_BYTES = { I8: 1, F16: 2, F32: 4 };

export class Flat {
  // config: of the network; arrays: of the whole tagger, as safetensors() gives them; nLabels: that words may
  // have; gazetteers: of the words of its lexicon, or null; precision: FLOAT32, or INT16 for products of 12-bit
  // numbers.
  constructor(memory, config, arrays, { nLabels, gazetteers, precision }) {
    this.memory = memory, this.arrays = arrays, this.nLabels = nLabels;
    this.gazetteers = config.gazetteers ? gazetteers : null;
    this.config = { ...config, width: config.n_heads * config.head_width };
    this.precision = precision;
    this.panel = Number(memory.exports.panel_width());
    this.step = Math.ceil(this.config.width / this.panel) * this.panel;
    const { width } = this.config;
    this.scale = config.scale_scores ? Math.fround(config.head_width ** -0.5) : 1;
    this.output = this.linear(this.weights("output.weight"), this.weights("output.bias"), width);
    this.nTags = arrays["output.weight"].shape[0];
    this.#readInput();
    this.layers = Array.from({ length: config.n_layers }, (_, number) => this.#layer(number));
    this.#relate(FIRST_CHARS, FIRST_REACH);
  }

  weights(name) {
    const found = this.arrays[name];
    if (!found || found.type !== "F32") throw new Error(`model.safetensors: ${name} is ${found ? found.type : "missing"}; expected F32`);
    return found.data;
  }

  // A linear layer packed for the compiled product, whose outputs have `nParts` equal parts, each in whole panels.
  linear(weight, bias, nIn, nParts = 1, precision = this.precision) {
    const { memory, panel } = this, nOut = weight.length / nIn, own = nOut / nParts;
    const wide = Math.ceil(own / panel) * panel, n = nParts * wide;
    const padded = inParts(weight, nParts, wide, nIn), paddedBias = bias && inParts(bias, nParts, wide, 1);
    const { numbers, scales } = precision === INT16 ? narrowed(padded, nIn) : wide32(padded, nIn);
    const kept = [inPanels(numbers, panel), paddedBias ?? new Float32Array(n), scales].map((each) => each && memory.put(each));
    const [panels, ownBias, ownScales] = kept;
    const fields = { n_in: nIn, n_panels: n / panel, panels, bias: ownBias, precision: memory.constants[precision], scales: ownScales };
    const address = memory.struct("Linear", fields);
    return {
      fields,
      nOut: n,
      // What it makes of rows in memory, written to memory; m rows of nIn and of nOut numbers.
      run: (from, m, to) => memory.exports.one_product(address, from, BigInt(m), to, BigInt(memory.constants.PLAIN)),
      // float32[m, nOut without padding] of float32[m, nIn].
      rows(x) {
        const m = x.length / nIn, to = memory.allocate(4 * m * n);
        memory.withCopies([x], (from) => this.run(from, m, to));
        const wideRows = memory.view(Float32Array, to, m * n), out = new Float32Array(m * nOut);
        for (let r = 0; r < m; r++)
          for (let p = 0; p < nParts; p++)
            out.set(wideRows.subarray(r * n + p * wide, r * n + p * wide + own), r * nOut + p * own);
        memory.free(to);
        return out;
      },
      free: () => [...kept, address].forEach((each) => memory.free(each)),
    };
  }

  // A table of rows, as Table of flat.h has it.
  #table(name) {
    const { memory, arrays } = this, [tuned, fixed, scale] = ["tuned", "fixed", "scale"].map((part) => arrays[`${name}.${part}`]);
    const nBytes = fixed && N_BYTES[fixed.type], width = tuned?.shape[1];
    if (!nBytes || tuned.type !== "F32" || fixed.shape[1] !== width || (nBytes === 1 && scale.data.length !== fixed.shape[0]))
      throw new Error(`model.safetensors: ${name}: expected rows of int8 with scales, of float16 or of float32`);
    const put = (part) => memory.put(part.data), n_tuned = tuned.shape[0];
    const fields = { tuned: put(tuned), fixed: put(fixed), scale: put(scale), n_tuned, width, n_bytes: nBytes };
    return { width, nRows: n_tuned + fixed.shape[0], fields, address: memory.struct("Table", fields) };
  }

  #readInput() {
    const { memory, config, step } = this, D = config.width;
    const char = this.#table("encoder.embeddings.char"), word = this.#table("encoder.embeddings.word");
    const bigram = config.use_bigrams ? this.#table("encoder.embeddings.bigram") : null;
    const charWord = config.use_words && config.char_words ? this.#table("encoder.embeddings.char_word") : null;
    const nBigram = bigram?.width ?? 0, nIn = char.width + nBigram + (charWord?.width ?? 0), nChar = nIn - nBigram;
    const chars = this.#folded("encoder.char_projection", nIn), words = this.#folded("encoder.word_projection", word.width);
    const ofBigram = columns(chars.weight, nIn, char.width, nBigram);
    const ofChar = new Float32Array(4 * D * nChar);
    for (let r = 0; r < 4 * D; r++) {
      ofChar.set(chars.weight.subarray(r * nIn, r * nIn + char.width), r * nChar);
      ofChar.set(chars.weight.subarray(r * nIn + char.width + nBigram, (r + 1) * nIn), r * nChar + char.width);
    }
    const hasBackoff = Boolean(bigram && config.bigram_backoff);
    const nBackoff = hasBackoff ? 2 * nBigram : 0, n = 4 * step + nBackoff;
    const fromChar = new Float32Array(n * nChar), bias = new Float32Array(n);
    fromChar.set(inParts(ofChar, 4, step, nChar)), bias.set(inParts(chars.bias, 4, step, 1));
    if (hasBackoff) { // what the vectors of the first and of the second character add to a bigram
      const weight = this.weights("encoder.embeddings.backoff.weight");
      for (let r = 0; r < nBigram; r++)
        for (const half of [0, 1]) {
          const at = (2 * r + half) * char.width;
          fromChar.set(weight.subarray(at, at + char.width), (4 * step + half * nBigram + r) * nChar);
        }
      bias.set(this.weights("encoder.embeddings.backoff.bias"), 4 * step);
    }
    const learn = this.linear(fromChar, bias, nChar, 1, FLOAT32); // rows of characters are kept as they are
    const charRows = memory.allocate(4 * char.nRows * learn.nOut), isKnown = memory.put(new Uint8Array(char.nRows));
    this.input = { char, charWord, nChar, learn, charRows, isKnown };
    const readsLabels = config.use_words && (config.word_labels || this.gazetteers);
    const labels = readsLabels ? memory.put(this.#labelRows()) : null;
    const fromBigram = bigram ? this.linear(ofBigram, null, nBigram, 4) : this.linear(new Float32Array(4 * D), null, 1, 4);
    const fromWord = this.linear(words.weight, words.bias, word.width, 4);
    this.inputFields = {
      n_char_numbers: learn.nOut,
      char_rows: charRows,
      label_rows: labels,
      bigram: bigram?.fields ?? null,
      word: word.fields,
      from_bigram: fromBigram.fields,
      from_word: fromWord.fields,
      has_bigrams: Boolean(bigram),
      has_backoff: hasBackoff,
    };
  }

  // float32[n, D] of rows float32[n, nIn] and weights [D, nIn].
  #times(rows, weight, nIn) {
    const layer = this.linear(weight, null, nIn, 1, FLOAT32), product = layer.rows(rows);
    layer.free();
    return product;
  }

  // Weight [4D, nIn] and bias [4D]: x, and the first layer's query, key and value of it.
  #folded(name, nIn) {
    const D = this.config.width, weight = new Float32Array(4 * D * nIn), bias = new Float32Array(4 * D);
    const own = this.weights(`${name}.weight`), ownBias = this.weights(`${name}.bias`), across = transposed(own, nIn);
    weight.set(own), bias.set(ownBias);
    this.#queryKeyValue(0).forEach((part, k) => {
      weight.set(transposed(this.#times(across, part.weight, D), D), (k + 1) * D * nIn);
      bias.set(this.#times(ownBias, part.weight, D).map((x, r) => x + part.bias[r]), (k + 1) * D);
    });
    return { weight, bias };
  }

  // float32[n, 4 * step]: what the label of a word, or its set of gazetteers, adds to its x, query, key and value in the
  // first layer.
  #labelRows() {
    const D = this.config.width, nLabels = this.nLabels + 2; // none, each that the model knows, and one that it does not
    const ofLabels = this.config.word_labels ? this.weights("encoder.word_labels.weight") : new Float32Array(nLabels * D);
    const ofSets = this.gazetteers?.rows(this.weights("encoder.gazetteers.weight")) ?? [];
    const labels = Float32Array.from([...ofLabels, ...ofSets]), n = labels.length / D;
    const parts = this.#queryKeyValue(0).map((part) => this.#times(labels, part.weight, D)), out = new Float32Array(n * 4 * this.step);
    for (let r = 0; r < n; r++)
      [labels, ...parts].forEach((x, k) => out.set(x.subarray(r * D, (r + 1) * D), (4 * r + k) * this.step));
    return out;
  }

  #queryKeyValue(number) {
    const { width: D, key_projection: projects } = this.config;
    return ["query", "key", "value"].map((part) => {
      const name = `encoder.layers.${number}.attention.${part}`, bias = this.arrays[`${name}.bias`];
      const isRaw = part === "key" && !projects;
      const weight = isRaw ? new Float32Array(D * D).map((_, k) => +(k % (D + 1) === 0)) : this.weights(`${name}.weight`);
      return { weight, bias: bias ? bias.data : new Float32Array(D) };
    });
  }

  #layer(number) {
    const { memory, config } = this, D = config.width, name = `encoder.layers.${number}`;
    const joined = (of) => Float32Array.from(this.#queryKeyValue(number).flatMap((part) => [...part[of]]));
    const ff = (part) => {
      const weight = this.weights(`${name}.${part}.weight`), bias = this.weights(`${name}.${part}.bias`);
      return this.linear(weight, bias, weight.length / bias.length).fields;
    };
    const norm = (of) =>
      Object.fromEntries(["weight", "bias"].map((part) => [part, memory.put(this.weights(`${name}.${of}.${part}`))]));
    const scaled = (part) => memory.put(this.weights(`${name}.attention.${part}`).map((x) => x * this.scale));
    const u = scaled("u");
    return {
      query_key_value: number ? this.linear(joined("weight"), joined("bias"), D, 3).fields : null, // else in the input tables
      ff_in: ff("ff_in"),
      ff_out: ff("ff_out"),
      attention_norm: norm("attention_norm"),
      ff_norm: norm(config.shared_layer_norm ? "attention_norm" : "ff_norm"),
      u,
      v: config.position_score === "bias" ? u : scaled("v"),
    };
  }

  #relate(nChars, maxReach) {
    const { memory, config } = this;
    this.relations?.free();
    memory.free(this.layersAddress), memory.free(this.address);
    const lanes = this.panel / 2, weights = (name) => this.weights(name), linear = (...given) => this.linear(...given, 1, FLOAT32);
    const isNarrow = this.precision === INT16 && config.position_score !== "bias"; // "bias" has no products to narrow
    const parts = { memory, config, weights, linear, lanes, narrowed: isNarrow ? narrowed : null };
    const relations = (this.relations = new Relations(parts, nChars, maxReach));
    this.layersAddress = memory.struct("Layer", ...this.layers.map((layer, number) => ({ ...layer, ...relations.fields(number) })));
    const { n_layers, n_heads, head_width, width, ff_width, residual, mask_self_matched } = config;
    this.address = memory.struct("Flat", {
      ...{ n_layers, n_heads, head_width, width, ff_width, residual, mask_self_matched },
      step: this.step,
      relation_chars: relations.nChars,
      relation_step: relations.columnStep,
      n_reaches: relations.maxReach + 1,
      is_bias: config.position_score === "bias",
      uses_words: config.use_words,
      max_distance: config.max_distance ?? 0,
      is_masked_by_distance: config.max_distance !== null && config.max_distance !== undefined,
      attention: memory.constants[this.precision],
      scale: this.scale,
      ...this.inputFields,
      output: this.output.fields,
      layers: this.layersAddress,
    });
  }

  // Make what sentences need and is not there yet: rows of characters, and tables for their lengths and their words'. Whether
  // the structure is another now.
  prepare(charRows, longest, reaches) {
    const used = this.config.use_words ? reaches : [];
    const maxReach = used.reduce((a, b) => Math.max(a, b), 0), { nChars, maxReach: known } = this.relations;
    const grows = longest > nChars || maxReach > known;
    if (grows) this.#relate(Math.ceil(Math.max(longest, nChars) / FIRST_CHARS) * FIRST_CHARS, Math.max(maxReach, known));
    this.relations.make(used);
    this.#learn(charRows);
    return grows;
  }

  #learn(rows) {
    const { memory, input } = this, { char, charWord, nChar, learn, charRows, isKnown } = input;
    const vector = memory.allocate(4 * nChar);
    for (const row of new Set(rows)) {
      if (memory.view(Uint8Array, isKnown + row, 1)[0]) continue;
      memory.withCopies([Int32Array.of(row)], (address) => {
        memory.exports.look_up_rows(char.address, address, 1n, vector, 0n);
        if (charWord) memory.exports.look_up_rows(charWord.address, address, 1n, vector + 4 * char.width, 0n);
      });
      learn.run(vector, 1, charRows + 4 * learn.nOut * row);
      memory.view(Uint8Array, isKnown + row, 1)[0] = 1;
    }
    memory.free(vector);
  }
}

// float32 with each of the equal parts of the rows filled up with zeros to `wide` rows.
function inParts(x, nParts, wide, width) {
  const out = new Float32Array(nParts * wide * width), own = x.length / nParts;
  for (let p = 0; p < nParts; p++) out.set(x.subarray(p * own, (p + 1) * own), p * wide * width);
  return out;
}

// Rows of words of 32 bits in panels of `panel` rows, as product.h has them: [n / panel][words of a row][panel].
function inPanels({ words, perRow }, panel) {
  const out = new Uint32Array(words.length), n = words.length / perRow;
  for (let r = 0; r < n; r++) {
    const at = (r - (r % panel)) * perRow + (r % panel);
    for (let k = 0; k < perRow; k++) out[at + k * panel] = words[r * perRow + k];
  }
  return out;
}

function wide32(rows, nIn) {
  return { numbers: { words: new Uint32Array(rows.buffer), perRow: nIn }, scales: null };
}

// Rows of float32 as whole numbers of 12 bits, two in a word, and a scale for each row; as to_int16 of runtime/precision.py.
export function narrowed(rows, nIn) {
  const n = rows.length / nIn, perRow = Math.ceil(nIn / 2), whole = new Int16Array(2 * n * perRow), scales = new Float32Array(n);
  for (let r = 0; r < n; r++) {
    let highest = 0;
    for (let k = 0; k < nIn; k++) highest = Math.max(highest, Math.abs(rows[r * nIn + k]));
    const factor = highest > 0 ? Math.fround(MOST_INT16 / highest) : 0;
    for (let k = 0; k < nIn; k++) whole[2 * r * perRow + k] = toNearest(Math.fround(rows[r * nIn + k] * factor));
    scales[r] = highest / MOST_INT16;
  }
  return { numbers: { words: new Uint32Array(whole.buffer), perRow }, scales };
}

// The nearest whole number, of two the even one.
function toNearest(x) {
  const rounder = 2 ** 52 + 2 ** 51; // a sum of this size has no fraction
  return x + rounder - rounder;
}

function transposed(x, width) {
  const n = x.length / width, out = new Float32Array(x.length);
  for (let r = 0; r < n; r++) for (let k = 0; k < width; k++) out[k * n + r] = x[r * width + k];
  return out;
}

// float32[rows, n], the columns from `first` on of rows of `width` numbers.
function columns(x, width, first, n) {
  const rows = x.length / width, out = new Float32Array(rows * n);
  for (let r = 0; r < rows; r++) out.set(x.subarray(r * width + first, r * width + first + n), r * n);
  return out;
}
