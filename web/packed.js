// What web/pack_model.py did to the arrays of a model is undone here; it says what the codings are.

const BLOCK = 256; // rows that are put in order together, so that they stay in the cache

// What a file has, whether it arrives compressed or the server, or the browser, has decompressed it already.
export async function unzipped(bytes, name) {
  const [first, second] = new Uint8Array(bytes, 0, Math.min(2, bytes.byteLength));
  if (first !== 0x1f || second !== 0x8b) return bytes;
  try {
    return await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  } catch {
    throw new Error(`${name}.gz: cut short or damaged; copy it again`);
  }
}

// The bytes of an array of `n` numbers of `size` bytes in `rows` rows.
export function decoded(coding, bytes, { size, rows }) {
  switch (coding) {
    case undefined: return bytes;
    case "columns": return inRows(bytes, rows, bytes.length / Math.max(1, rows));
    case "planes": return inRows(bytes, bytes.length / size, size);
    case "steps": return summed(inRows(bytes, bytes.length / size, size), size);
    default: throw new Error(`coding ${coding}: this page is older than its model; build it again`);
  }
}

// Uint8Array[n, width] of what is there as [width, n].
function inRows(from, n, width) {
  const to = new Uint8Array(from.length);
  for (let begin = 0; begin < n; begin += BLOCK) {
    const end = Math.min(n, begin + BLOCK);
    for (let c = 0; c < width; c++)
      for (let r = begin, place = begin * width + c, own = c * n + begin; r < end; r++, place += width) to[place] = from[own++];
  }
  return to;
}

// The numbers of which these are the differences, modulo 2^32 or 2^64.
function summed(bytes, size) {
  if (size === 4) {
    const numbers = new Uint32Array(bytes.buffer);
    for (let k = 1; k < numbers.length; k++) numbers[k] += numbers[k - 1];
    return bytes;
  }
  const halves = new Uint32Array(bytes.buffer); // numbers of 64 bits would be slow
  for (let k = 2; k < halves.length; k += 2) {
    const low = halves[k] + halves[k - 2];
    halves[k] = low;
    halves[k + 1] += halves[k - 1] + (low > 0xffffffff ? 1 : 0);
  }
  return bytes;
}
