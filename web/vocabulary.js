// Vocabulary: which row of a table each character, bigram and word has, as rows_of_tables.h reads it.

const BIGRAM_SHIFT = 21n; // bits of a code point; above them stands the first character of a bigram

// The address of the structure; arrays: those of vocabulary.safetensors.
export function vocabulary(memory, arrays) {
  const data = (name) => {
    if (!arrays[name]) throw new Error(`vocabulary.safetensors: ${name} is missing; copy the model folder again`);
    return arrays[name].data;
  };
  const codes = data("bigrams.codes"), firsts = [], begin = [];
  for (let k = 0, last = -1n; k < codes.length; k++) {
    const first = codes[k] >> BIGRAM_SHIFT;
    if (first === last) continue;
    firsts.push((last = first)), begin.push(k);
  }
  begin.push(codes.length);
  const places = Int32Array.from(firsts, (_, k) => k + 2), words = data("word_rows");
  const bigrams = {
    firsts: hashed(memory, BigInt64Array.from(firsts), places),
    n_firsts: firsts.length,
    begin: memory.put(Int32Array.from(begin)),
    n_codes: codes.length,
    codes: memory.put(codes),
    rows: memory.put(data("bigrams.rows")),
  };
  const chars = hashed(memory, data("chars.codes"), data("chars.rows"));
  return memory.struct("Vocabulary", { chars, bigrams, word_rows: memory.put(words), n_base: words.length });
}

// The structure Codes: a hash table of at most half its slots taken.
function hashed(memory, codes, rows) {
  const bits = Math.max(1, (2 * codes.length).toString(2).length);
  const keys = memory.put(new BigUint64Array(2 ** bits)), values = memory.put(new Int32Array(2 ** bits));
  memory.withCopies([codes, rows], (...given) => {
    memory.exports.fill_codes(...given, BigInt(codes.length), BigInt(bits), keys, values);
  });
  return { keys, rows: values, bits };
}
