// Selection: under which label and with which score the entities of a model are reported, as cige.tagging.selection and
// cige.entities.label_facts have it, for the best reading of a text.

const TYPES = ["fine", "coarse"];

export class Selection {
  // facts: the manifest of a model; options: { types, labels, minScore } of a call.
  constructor(facts, { types = "fine", labels = null, minScore = 0 }) {
    if (!TYPES.includes(types)) throw new Error(`given types=${JSON.stringify(types)}; expected one of ${TYPES.join(", ")}`);
    if (!(minScore >= 0 && minScore <= 1)) throw new Error(`given minScore=${minScore}; expected a probability from 0 to 1`);
    if (labels !== null && !Array.isArray(labels)) throw new Error(`given labels=${JSON.stringify(labels)}; expected a list of labels`);
    this.minScore = minScore;
    const named = new Set(labels ?? []), known = new Set(facts.labels), silent = new Set(facts.silent ?? []);
    const nameOf = types === "coarse" ? coarse : spoken, names = new Map();
    for (const label of facts.labels) {
      const name = nameOf(line(label, facts.parents ?? {}), { known, silent, named, coarseLabels: new Set(facts.coarse ?? []) });
      if (name !== null) names.set(label, name);
    }
    const reportable = new Set(names.values()), unknown = [...named].filter((label) => !reportable.has(label));
    if (unknown.length) throw new Error(`no label ${unknown.join(", ")}; the model reports ${[...reportable].sort().join(", ")}`);
    this.names = new Map([...names].filter(([, name]) => labels === null || named.has(name)));
    this.maxLengths = maxLengths(facts.max_lengths ?? {}, this.names);
    const isFlat = !Object.keys(facts.parents ?? {}).length;
    this.knots = facts.calibration?.[isFlat ? "fine" : types]?.knots ?? null;
  }

  // The address of the structure Families of chain.h, or 0 where each label is reported by itself; with `free`.
  families(memory, labels) {
    const reported = [...new Set(this.names.values())];
    if (reported.length === this.names.size) return { address: 0, free: () => {} };
    const numbers = labels.map((label) => reported.indexOf(this.names.get(label)));
    const family = memory.put(Int32Array.from(numbers));
    const address = memory.struct("Families", { n_families: reported.length, family, threshold: null });
    return { address, free: () => [address, family].forEach((each) => memory.free(each)) };
  }

  // The score, 0..1, that an entity of this probability is reported with.
  score(probability) {
    const { knots } = this;
    if (!knots) return probability;
    const above = knots.findIndex(([given]) => given > probability);
    if (above === 0) return knots[0][1];
    if (above < 0) return knots.at(-1)[1];
    const [[x0, y0], [x1, y1]] = [knots[above - 1], knots[above]];
    return y0 + ((y1 - y0) / (x1 - x0)) * (probability - x0);
  }
}

// { label: characters }: of an entity that is reported as this label, the most that any label allows that is reported as the
// same. `names` maps labels to what they are reported as; a label without a limit is not in `limits`.
function maxLengths(limits, names) {
  const longest = {};
  for (const [label, name] of names) longest[name] = Math.max(longest[name] ?? 0, limits[label] ?? Infinity);
  return { ...limits, ...Object.fromEntries([...names].map(([label, name]) => [label, longest[name]])) };
}

// A label, its parent, the parent's parent, and so on; a circle ends where it closes.
function line(label, parents) {
  const found = [label];
  for (let above; (above = parents[found.at(-1)]) !== undefined && !found.includes(above); ) found.push(above);
  return found;
}

function spoken(above, { known, silent, named }) {
  const [label] = above;
  return above.find((name) => known.has(name) && (!silent.has(name) || (name === label && named.has(name)))) ?? null;
}

function coarse(above, { known, silent, named, coarseLabels }) {
  if (silent.has(above[0]) && named.has(above[0])) return above[0];
  let reported = above.filter((name) => known.has(name) && !silent.has(name));
  if (coarseLabels.size) reported = reported.filter((name) => coarseLabels.has(name) || named.has(name));
  return reported.at(-1) ?? null;
}
