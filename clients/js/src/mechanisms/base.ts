// What every mechanism can do, and how its parameters are read from a task.

import { malformed } from "../canonical.js";
import type { Json, JsonObject } from "../canonical.js";
import type { Column, Drawn } from "../columns.js";
import type { Code, Domain } from "../domains.js";
import type { Fraction, Ratio } from "../ratio.js";
import type { Words } from "../words.js";

export interface Mechanism {
  readonly columns: readonly Column[];
  readonly ratio: Ratio; // exact, whichever way round is worse
  readonly disjoint?: boolean; // a report supports one value at most
  readonly moment?: (values: number) => Fraction; // of hashing independently: that so many values share a bucket
  draw(code: Code, words: Words): Drawn | Promise<Drawn>;
  // Mechanisms in two steps: the first is kept and paid for, the second makes any number of reports of it. What belongs to
  // the person and not to a value is drawn once per person: a new one with every new value would show each change.
  readonly longitudinal?: {
    readonly personal: readonly Column[]; // the first columns
    person(words: Words): Drawn;
    permanent(code: Code, person: Drawn, words: Words): Promise<Drawn>;
    instant(memo: Drawn, words: Words): Drawn;
  };
}

export interface Parameters {
  readonly document: JsonObject; // as it stands in the task, with the shown domain in it
  readonly domain: Domain;
  readonly keys: JsonObject; // beside kind, epsilon and thresholds
  coin(name: string): bigint;
}

export interface Kind {
  readonly keys: readonly string[];
  thresholds(keys: JsonObject): readonly string[];
  make(parameters: Parameters): Mechanism;
}

export const kind = (keys: string[], thresholds: string[], make: Kind["make"]): Kind => ({
  keys,
  thresholds: () => thresholds,
  make,
});

export function coinsOf(document: Json | undefined, names: readonly string[]): Map<string, bigint> {
  const coins = new Map(
    Object.entries((document ?? {}) as JsonObject).map(([name, text]) => {
      if (typeof text !== "string" || !/^[0-9a-f]{16}$/.test(text)) throw malformed("thresholds of 16 hex digits");
      return [name, BigInt(`0x${text}`)];
    }),
  );
  if (coins.size !== names.length || !names.every((name) => coins.has(name))) {
    throw malformed(`the thresholds ${names.join(", ")}`);
  }
  return coins;
}

// Refuses a domain that is larger than the mechanism can ask about, or that has no indices.
export function indices(domain: Domain, most: bigint): bigint {
  if (!domain.indexed || domain.size > most) throw malformed(`a domain of at most ${most} values, each with an index`);
  return domain.size;
}

// Refuses a domain of anything but numbers, or a grid that is too fine.
export function cellsOf(domain: Domain): bigint {
  if (domain.middle === undefined || domain.size > 1n << 32n) throw malformed("numbers on a grid of at most 2^32 cells");
  return domain.size;
}

export const LISTABLE = 1n << 24n;

// Randomized response over 0 .. size - 1: stay on a coin, else one of the others.
export function stayOrMove(words: Words, stay: bigint, held: bigint, size: bigint): bigint {
  if (words.coin(stay)) return held;
  const other = words.below(size - 1n);
  return other >= held ? other + 1n : other;
}
