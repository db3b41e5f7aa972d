// Gazetteers: which lists of names a word of the lexicon is in, as rows of the table of labels of words; as
// label_and_set_ids of cige.data.vocabulary and cige.runtime.component_rows have them.

const LEXICON = 1; // the bit of the lexicon itself

export class Gazetteers {
  // groups: of each word of the lexicon, a bit for each gazetteer; nGroups: of them, with the lexicon.
  constructor(groups, nGroups) {
    this.nGroups = nGroups;
    this.sets = [...new Set([0, ...groups.map((bits) => bits & ~LEXICON)])].sort((a, b) => a - b);
    const place = new Map(this.sets.map((bits, k) => [bits, k]));
    this.setOf = groups.map((bits) => place.get(bits & ~LEXICON));
  }

  // The row of a word of the lexicon, 0 for one in no gazetteer; the rows of labels come first.
  row(word, nLabels) {
    return this.setOf[word] ? nLabels + 1 + this.setOf[word] : 0;
  }

  // float64[sets - 1, D]: the sum of the vectors float32[D, nGroups - 1] of each set but the empty one.
  rows(vectors) {
    const nVectors = this.nGroups - 1, D = vectors.length / nVectors, out = new Float64Array((this.sets.length - 1) * D);
    this.sets.slice(1).forEach((bits, r) => {
      for (let k = 0; k < D; k++)
        for (let g = 0; g < nVectors; g++) if ((bits >> (g + 1)) & 1) out[r * D + k] += vectors[k * nVectors + g];
    });
    return out;
  }
}
