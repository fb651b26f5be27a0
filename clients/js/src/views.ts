// From what a person holds to what one question asks about: an index, or bytes, of a smaller domain.

import { bigEndian, bytesFor, fromBigEndian } from "./bytes.js";
import { byKind, decimal, decimalText, integer, isObject, listOf, malformed, setsOf, take } from "./canonical.js";
import type { Json } from "./canonical.js";
import { categoriesOf, readDomain } from "./domains.js";
import type { Code, Domain } from "./domains.js";
import { splitmix64 } from "./hash.js";
import type { Mechanism } from "./mechanisms/base.js";
import { NOTHING, choose, exceeds } from "./ratio.js";
import type { Guarantee } from "./ratio.js";
import type { Words } from "./words.js";

export interface View {
  readonly domain: Domain; // what it shows
  apply(code: Code, words: Words): Code;
  readonly random: boolean; // it draws, and is then no part of another view
  outer(behind: Mechanism): Guarantee; // what the mechanism behind it promises, seen from the held value
}

type Attribute = NonNullable<Domain["attributes"]>[number];
type Parts = Pick<View, "domain" | "apply"> & Partial<View>;

function identity(document: Json, source: Domain): Parts {
  take(document, "identity");
  return { domain: source, apply: (code) => code };
}

function segment(document: Json, source: Domain): Parts {
  const [first, last] = take(document, "segment", "start", "stop");
  const { bits } = source;
  if (bits === undefined) throw malformed("a segment of bits or text");
  const start = integer(first, 0, bits - 1);
  const stop = integer(last, start + 1, bits);
  const [width, drop] = [stop - start, BigInt(bits - stop)];
  const mask = (1n << BigInt(width)) - 1n;
  return {
    domain: readDomain({ kind: "bits", bits: width }),
    apply(code) {
      const number = typeof code === "bigint" ? code : fromBigEndian(code as Uint8Array);
      const shown = (number >> drop) & mask;
      return width > 64 ? bigEndian(shown, bytesFor(width)) : shown;
    },
  };
}

// A segment behind the channel that a public hash puts the whole string in.
function channelSegment(document: Json, source: Domain): Parts {
  const [count, start, stop] = take(document, "channel-segment", "channels", "start", "stop");
  const channels = BigInt(integer(count, 2, 2 ** 16));
  const inner = segment({ kind: "segment", start: start as Json, stop: stop as Json }, source);
  const [bits, width] = [source.bits as number, BigInt(inner.domain.bits as number)];
  const wide = (channels - 1n).toString(2).length + Number(width);
  if (wide > 64) throw malformed("a channel and a segment that fit into 64 bits");
  return {
    domain: readDomain({ kind: "bits", bits: wide }),
    apply(code, words) {
      const number = typeof code === "bigint" ? code : fromBigEndian(code as Uint8Array);
      let mixed = 0n;
      for (let first = 0; first < bits; first += 64) {
        const last = Math.min(first + 64, bits);
        mixed = splitmix64(mixed ^ ((number >> BigInt(bits - last)) & ((1n << BigInt(last - first)) - 1n)));
      }
      return ((((mixed >> 32n) * channels) >> 32n) << width) | (inner.apply(code, words) as bigint);
    },
  };
}

function ancestor(document: Json, source: Domain): Parts {
  const [branching, depth] = take(document, "ancestor", "branching", "level");
  if (!source.indexed) throw malformed("a domain with one index a value");
  const branches = BigInt(integer(branching, 2, Number.MAX_SAFE_INTEGER));
  let height = 0;
  for (let reach = 1n; reach < source.size; reach *= branches) height += 1;
  const level = integer(depth, 1, height);
  const leaves = branches ** BigInt(height - level);
  return {
    domain: level === height ? source : categoriesOf((source.size + leaves - 1n) / leaves),
    apply: (code) => (code as bigint) / leaves,
  };
}

function project(document: Json, source: Domain): Parts {
  const names = listOf(take(document, "project", "attributes")[0]);
  const held = source.attributes ?? [];
  const places = names.map((name) => held.findIndex(([known]) => known === name));
  if (!places.length || places.includes(-1) || new Set(places).size !== places.length) {
    throw malformed("some attributes of the record");
  }
  return joined(
    places.map((at) => ({ domain: (held[at] as Attribute)[1], apply: (codes) => (codes as bigint[])[at] as bigint })),
  );
}

// What several views show, as one index: the last varies fastest.
function joined(views: Parts[]): Parts {
  const size = views.reduce((whole, { domain }) => whole * domain.size, 1n);
  if (size > Number.MAX_SAFE_INTEGER) throw malformed("fewer than 2^53 combinations");
  return {
    domain: views.length === 1 ? (views[0] as Parts).domain : categoriesOf(size),
    apply: (code, words) =>
      views.reduce((index, view) => index * view.domain.size + (view.apply(code, words) as bigint), 0n),
  };
}

const MOST_LOAD = 1024;

// Padding's keys: a load stands only in tasks that have one.
const padding = (document: Json): string[] =>
  isObject(document) && Object.hasOwn(document, "load") ? ["length", "load"] : ["length"];

// One of `codesOf` a held set, after padding to a length with codes from `dummies` on.
function padded([size, most]: Json[], dummies: bigint, codesOf: (code: Code) => bigint[]): Parts {
  const length = integer(size, 1, 2 ** 31);
  const load = most === undefined ? null : integer(most, 1, Math.min(length - 1, MOST_LOAD));
  return {
    domain: categoriesOf(dummies + BigInt(length)),
    random: true,
    apply(code, words) {
      const codes = codesOf(code);
      const drawn = Number(words.below(BigInt(Math.max(codes.length, length))));
      return codes[drawn] ?? dummies + BigInt(drawn - codes.length);
    },
    // Any one item is the sampled one with probability 1 / length at most: 1 + (r - 1) / length behind GRR. Behind
    // hashing it is 1 + (r - 1) load / length, unless more than a load of the items share a bucket.
    outer({ ratio: [above, under], disjoint, moment }) {
      const whole = under * BigInt(length);
      const ratio = [whole + (above - under) * BigInt(disjoint ? 1 : (load ?? length)), whole] as const;
      if (load === null) return { ratio, delta: NOTHING };
      if (moment === undefined) throw malformed("a load behind OLH or BLH only");
      const [shared, all] = moment(load + 1);
      const delta = [choose(length, load + 1) * shared, all] as const;
      if (!exceeds([1n, 1n], delta)) throw malformed("a load that promises something: a delta below 1");
      return { ratio, delta };
    },
  };
}

function squaredDistance(document: Json, source: Domain): Parts {
  const [from, cells] = take(document, "squared-distance", "centre", "cells");
  const { middle, size } = source;
  if (middle === undefined || size > 1n << 32n) throw malformed("numbers on a grid of at most 2^32 cells");
  const centre = decimal(from);
  const square = (cell: bigint): number => {
    const distance = middle(cell) - centre;
    return distance * distance;
  };
  const reach = Math.max(square(0n), square(size - 1n));
  if (Object.is(centre, -0) || !(0 < reach && reach < Infinity)) {
    throw malformed("a squared distance that is finite and not 0");
  }
  const domain = readDomain({ kind: "interval", lo: "0", hi: decimalText(reach), cells: cells as Json });
  return { domain, apply: (cell) => domain.encode(square(cell as bigint)) };
}

// How many of `codesOf` a held set there are; `most` stands for that many and more.
function counted(limit: Json | undefined, all: bigint, codesOf: (code: Code) => bigint[]): Parts {
  const most = integer(limit, 1, Number(all));
  return {
    domain: categoriesOf(BigInt(most + 1)),
    apply: (code) => BigInt(Math.min(codesOf(code).length, most)),
  };
}

function universeOf(source: Domain): bigint {
  if (source.universe === undefined) throw malformed("a view of sets of items");
  return source.universe.size;
}

// A task's candidates, different sets of items' codes: how many, and the numbers of those that a held set contains.
function candidatesOf(listed: Json | undefined, source: Domain): [bigint, (code: Code) => bigint[]] {
  const sets = setsOf(listed, Number(universeOf(source)) - 1);
  const contained = (code: Code) => {
    const held = new Set((code as bigint[]).map(Number));
    return sets.flatMap((set, number) => (set.every((item) => held.has(item)) ? [BigInt(number)] : []));
  };
  return [BigInt(sets.length), contained];
}

function sampleItem(document: Json, source: Domain): Parts {
  return padded(take(document, "sample-item", ...padding(document)), universeOf(source), (code) => code as bigint[]);
}

function sampleContained(document: Json, source: Domain): Parts {
  const [listed, ...sizes] = take(document, "sample-contained", "candidates", ...padding(document));
  return padded(sizes, ...candidatesOf(listed, source));
}

function countContained(document: Json, source: Domain): Parts {
  const [listed, most] = take(document, "count-contained", "candidates", "most");
  return counted(most, ...candidatesOf(listed, source));
}

function setSize(document: Json, source: Domain): Parts {
  return counted(take(document, "set-size", "most")[0], universeOf(source), (code) => code as bigint[]);
}

// A view within another: one that draws nothing, and not too deep.
function inner(document: Json | undefined, source: Domain, depth: number): View {
  const view = depth < 8 && readView(document, source, depth + 1);
  if (!view || view.random) throw malformed("views that draw nothing, at most eight deep");
  return view;
}

function composed(document: Json, source: Domain, depth: number): Parts {
  const [one, other] = take(document, "composed", "first", "then");
  const first = inner(one, source, depth);
  const then = inner(other, first.domain, depth);
  return { domain: then.domain, apply: (code, words) => then.apply(first.apply(code, words), words) };
}

function productOf(document: Json, source: Domain, depth: number): Parts {
  const views = listOf(take(document, "product", "views")[0]).map((part) => inner(part, source, depth));
  if (views.length < 2 || !views.every(({ domain }) => domain.indexed)) throw malformed("two views with one index a value");
  return joined(views);
}

const readers: Record<string, (document: Json, source: Domain, depth: number) => Parts> = {
  identity,
  segment,
  "channel-segment": channelSegment,
  ancestor,
  project,
  "sample-item": sampleItem,
  "squared-distance": squaredDistance,
  "sample-contained": sampleContained,
  "count-contained": countContained,
  "set-size": setSize,
  composed,
  product: productOf,
};

// The view that a task describes, of its held domain.
export function readView(document: Json | undefined, source: Domain, depth = 1): View {
  const parts = byKind(document, readers, "a view")(document as Json, source, depth);
  return { outer: ({ ratio }) => ({ ratio, delta: NOTHING }), random: false, ...parts };
}
