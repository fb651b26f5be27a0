// Rules that many questions about a record follow, and the mechanisms that they are asked through, by shown size.

import { byKind, canonical, integer, malformed, pairsOf, setsOf, take } from "./canonical.js";
import type { Json } from "./canonical.js";
import { categoriesOf } from "./domains.js";
import type { Code, Domain } from "./domains.js";
import { readMechanism } from "./mechanisms/index.js";
import type { Mechanism } from "./mechanisms/index.js";

// What a question asks of an attribute: where it stands in the record, the values in a node, and how many nodes it has;
// of a bit, what it is worth and two.
interface Asked {
  readonly name?: string;
  readonly place: number;
  readonly width: bigint;
  readonly nodes: number;
}

export interface Family {
  readonly count: bigint; // of questions
  readonly mechanisms: Mechanism[]; // for all shown sizes, increasing
  // What a question shows of a record, and the mechanism that it is asked through.
  shown(question: bigint, codes: Code): [bigint, Mechanism];
}

const wrong = (): Error => malformed("a family of at most 2^20 questions about a record");

// Refuses too many questions before they are made.
function few(questions: number): void {
  if (!(questions <= 2 ** 20)) throw wrong();
}

function attributeSets(document: Json, whole: Asked[]): Asked[][] {
  const size = integer(take(document, "attribute-sets", "size")[0], 1, Math.min(whole.length, 52));
  let [sets, count]: [Asked[][], number] = [[[]], 1];
  for (let k = 1; k <= size; k++) {
    few((count = (count * (whole.length - k + 1)) / k));
    sets = sets.flatMap((set) => whole.slice((set.at(-1)?.place ?? -1) + 1).map((next) => [...set, next]));
  }
  return sets;
}

function listed(document: Json, kind: string, whole: Asked[]): Asked[][] {
  const sets = setsOf(take(document, kind, "sets")[0], whole.length - 1);
  return sets.map((set) => set.map((place) => whole[place] as Asked));
}

// All combinations of levels but that of all roots, the last attribute's varying fastest; level 0 asks for nothing.
function levels(document: Json, whole: Asked[]): Asked[][] {
  const trees = pairsOf(take(document, "levels", "trees")[0]).map(([name, branching]) => {
    const [branches, tree] = [integer(branching, 2, Number.MAX_SAFE_INTEGER), [] as Asked[]];
    let level = whole.find((attribute) => attribute.name === name);
    while (level && level.nodes > 1) {
      tree.unshift(level);
      level = { ...level, width: level.width * BigInt(branches), nodes: Math.ceil(level.nodes / branches) };
    }
    return tree;
  });
  if (!trees.every(({ length }) => length) || new Set(trees.map(([top]) => top?.name)).size !== trees.length) {
    throw wrong();
  }
  few(trees.reduce((count, { length }) => count * (length + 1), 1));
  return trees
    .reduce<Asked[][]>((sets, tree) => sets.flatMap((set) => [set, ...tree.map((level) => [...set, level])]), [[]])
    .slice(1);
}

// All sets of bits, but the empty one, that touch at most `size` attributes, as one mask for each attribute: the masks of
// the last vary fastest.
function parities(document: Json, whole: Asked[], bits: Asked[][]): Asked[][] {
  const size = integer(take(document, "parities", "size")[0], 1, whole.length);
  let sets: [number, Asked[]][] = [[0, []]];
  let counts = Array(size + 1).fill(1) as number[]; // of sets that touch at most 0, 1, ... attributes
  for (const { length } of bits) counts = counts.map((count, most) => count + (2 ** length - 1) * (counts[most - 1] ?? 0));
  few((counts[size] as number) - 1);
  for (const own of bits) {
    const next: typeof sets = [];
    for (const [touched, set] of sets) {
      next.push([touched, set]);
      for (let mask = 1; touched < size && mask < 2 ** own.length; mask++) {
        next.push([touched + 1, set.concat(own.filter((_, at) => (mask << at) & (1 << (own.length - 1))))]);
      }
    }
    sets = next;
  }
  return sets.slice(1).map(([, set]) => set);
}

const rules: Record<string, (document: Json, whole: Asked[], bits: Asked[][]) => Asked[][]> = {
  "attribute-sets": attributeSets,
  "listed-sets": (document, whole) => listed(document, "listed-sets", whole),
  levels,
  "listed-bits": (document, _, bits) => listed(document, "listed-bits", bits.flat()),
  parities,
};

// The questions of a rule about a record. An entry of the table of mechanisms holds from its size up to the next one's.
export function readFamily(rule: Json | undefined, table: Json | undefined, { attributes = [] }: Domain): Family {
  const whole = attributes.map(([name, { size }], place) => ({ name, place, width: 1n, nodes: Number(size) }));
  // The bits of each attribute, highest first.
  const bits = attributes.map(([, { size }], place) => {
    const own: Asked[] = [];
    for (let width = 1n; width < size; width *= 2n) own.unshift({ place, width, nodes: 2 });
    return own;
  });
  const read = byKind(rule, rules, "a rule");
  const [questions, parity] = [read(rule as Json, whole, bits), read === parities];
  // 2^53, which no domain has, stands for all that is more; a double is below it only where the product is.
  const sizeOf = (asked: Asked[]): number =>
    parity ? 2 : asked.reduce((size, { nodes }) => Math.min(size * nodes, 2 ** 53), 1);
  const sizes = [...new Set(questions.map(sizeOf))].sort((a, b) => a - b);
  const entries = pairsOf(table);
  const texts = entries.map(([, bare]) => canonical(bare));
  let at = -1;
  const mechanisms = sizes.map((size) => {
    if (entries[at + 1]?.[0] === size) at += 1;
    return readMechanism(entries[at]?.[1], categoriesOf(BigInt(size)));
  });
  if (!sizes.length || at + 1 < texts.length || texts.some((text, i) => text === texts[i - 1])) throw wrong();
  return {
    count: BigInt(questions.length),
    mechanisms,
    shown(question, codes) {
      const asked = questions[Number(question)] as Asked[];
      let index = 0n;
      for (const { place, width, nodes } of asked) {
        const node = (((codes as bigint[])[place] as bigint) / width) % BigInt(nodes);
        index = parity ? index ^ node : index * BigInt(nodes) + node;
      }
      return [index, mechanisms[sizes.indexOf(sizeOf(asked))] as Mechanism];
    },
  };
}
