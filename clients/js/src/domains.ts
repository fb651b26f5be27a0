// What a person may hold: values to codes, and a refusal, which never shows the value, for what does not belong.

import { bigEndian, bytesFor, encodeText, fromBigEndian } from "./bytes.js";
import { byKind, decimal, integer, listOf, malformed, pairsOf, take } from "./canonical.js";
import type { Json, JsonObject } from "./canonical.js";
import { DomainError } from "./errors.js";

// An index; bytes above 64 bits and for text; one index an item or attribute.
export type Code = bigint | Uint8Array | bigint[];

export interface Domain {
  readonly json: JsonObject;
  readonly size: bigint;
  readonly indexed: boolean; // one index a value
  readonly bits?: number;
  readonly universe?: Domain;
  readonly attributes?: readonly (readonly [string, Domain])[];
  middle?(cell: bigint): number; // of numbers alone: what a code stands for
  encode(value: unknown): Code;
}

type Parts = Omit<Domain, "json">;

const EXACT = Number.MAX_SAFE_INTEGER;
const [YEAR_1, YEAR_9999] = [-62_135_596_800, 253_402_300_799]; // first and last second, since 1970
const isMissing = (value: unknown): boolean => value === null || value === undefined || Number.isNaN(value);

function refuse(expected: string): never {
  throw new DomainError(`expected ${expected}`);
}

// A whole number from lo to hi, as its distance from lo.
function position(value: unknown, lo: bigint, hi: bigint, expected: string): bigint {
  if (typeof value !== "bigint" && !Number.isSafeInteger(value)) refuse(expected);
  const number = BigInt(value as number | bigint);
  return number < lo || number > hi ? refuse(expected) : number - lo;
}

function categories(document: JsonObject): Parts {
  const listed = !Object.hasOwn(document, "size");
  const [first, missing] = take(document, "categories", listed ? "labels" : "size", "missing");
  if (missing !== "refuse" && missing !== "category") throw malformed('"refuse" or "category" for missing values');
  const labels = listed ? listOf(first).map(label) : [];
  const index = new Map(labels.map((name, i) => [name, BigInt(i)]));
  if (index.size !== labels.length) throw malformed("labels that differ");
  const count = integer(listed ? labels.length : first, 1, EXACT);
  const expected = listed ? `one of the ${count} categories` : `an integer from 0 to ${count - 1}`;
  return {
    size: BigInt(count) + (missing === "category" ? 1n : 0n),
    indexed: true,
    encode(value) {
      if (isMissing(value)) return missing === "category" ? BigInt(count) : refuse(`${expected}; the value is missing`);
      if (!listed) return position(value, 0n, BigInt(count - 1), expected);
      const name = typeof value === "string" ? value.normalize("NFC") : value;
      return index.get((typeof name === "bigint" ? Number(name) : name) as string) ?? refuse(expected);
    },
  };
}

function label(document: Json): string | number {
  if (typeof document !== "string") return integer(document, -EXACT, EXACT);
  if (document.normalize("NFC") !== document) throw malformed("labels in Unicode's normal form C");
  return document;
}

function integers(document: JsonObject): Parts {
  const [from, to] = take(document, "integers", "lo", "hi");
  const lo = BigInt(integer(from, -EXACT, EXACT));
  const hi = BigInt(integer(to, Number(lo), EXACT));
  return {
    size: hi - lo + 1n,
    indexed: true,
    middle: (cell) => Number(lo) - 0.5 + (Number(cell) + 0.5), // as for an interval whose cells begin at halves
    encode: (value) => position(value, lo, hi, `an integer from ${lo} to ${hi}`),
  };
}

function interval(document: JsonObject): Parts {
  const timed = Object.hasOwn(document, "unit");
  const [from, to, count, unit] = take(document, "interval", "lo", "hi", "cells", ...(timed ? ["unit"] : []));
  const [lo, hi, cells] = [decimal(from), decimal(to), integer(count, 1, 2 ** 32)];
  if (!(lo < hi && hi - lo < Infinity)) throw malformed("an interval of finite length");
  if (timed && (unit !== "time" || lo < YEAR_1 || hi > YEAR_9999)) {
    throw malformed("times between the years 1 and 9999");
  }
  const shown = (end: number): string => (timed ? new Date(end * 1000).toISOString() : String(end));
  const read = timed ? seconds : (value: unknown) => (typeof value === "bigint" ? Number(value) : value);
  return {
    size: BigInt(cells),
    indexed: true,
    middle: (cell) => lo + ((Number(cell) + 0.5) / cells) * (hi - lo),
    encode(value) {
      const number = read(value);
      if (typeof number !== "number" || !(lo <= number && number <= hi)) {
        refuse(`a ${timed ? "Date" : "number"} from ${shown(lo)} to ${shown(hi)}`);
      }
      const cell = Math.floor(((number - lo) / (hi - lo)) * cells); // IEEE doubles, in this order
      return BigInt(Math.min(cell, cells - 1));
    },
  };
}

// A Date in seconds since 1970, by way of microseconds: beyond 2^53 of them the doubles would else differ from Python's.
function seconds(value: unknown): unknown {
  return value instanceof Date ? (value.getTime() * 1000) / 1e6 : null;
}

function bitStrings(document: JsonObject): Parts {
  const bits = integer(take(document, "bits", "bits")[0], 1, 4096);
  const size = 1n << BigInt(bits);
  const expected = `a string of ${bits} bits, as an integer or as ${bytesFor(bits)} bytes`;
  return {
    size,
    bits,
    indexed: bits <= 64,
    encode(value) {
      const whole = value instanceof Uint8Array && value.length === bytesFor(bits) ? fromBigEndian(value) : value;
      const number = position(whole, 0n, size - 1n, expected);
      return bits > 64 ? bigEndian(number, bytesFor(bits)) : number;
    },
  };
}

function text(document: JsonObject): Parts {
  const most = integer(take(document, "text", "max_bytes")[0], 1, 512);
  return {
    size: 1n << BigInt(8 * most),
    bits: 8 * most,
    indexed: false,
    encode(value) {
      if (typeof value !== "string" || /\0|\p{Surrogate}/u.test(value))
        refuse("a string of Unicode without zero characters");
      const code = new Uint8Array(most);
      code.set(encodeText(value.normalize("NFC")).subarray(0, most));
      return code;
    },
  };
}

function items(document: JsonObject): Parts {
  const universe = readDomain(take(document, "items", "universe")[0]);
  if (!universe.indexed || universe.size > EXACT) throw malformed("a universe with one index a value");
  return {
    universe,
    size: 0n, // sets are never asked about as a whole
    indexed: false,
    encode(value) {
      const iterable = typeof value === "object" && value !== null && Symbol.iterator in value;
      if (!iterable) refuse("a set of items (an empty one is a list of length 0)");
      const codes = new Set([...(value as Iterable<unknown>)].map((item) => universe.encode(item) as bigint));
      return [...codes].sort((a, b) => (a < b ? -1 : 1));
    },
  };
}

function record(document: JsonObject): Parts {
  const attributes = pairsOf(take(document, "record", "attributes")[0]).map(([name, part]) => {
    const domain = typeof name === "string" && name !== "" ? readDomain(part) : null;
    if (!domain?.indexed) throw malformed("attributes with one index a value");
    return [name as string, domain] as const;
  });
  const names = new Set(attributes.map(([name]) => name));
  if (!names.size || names.size !== attributes.length) throw malformed("names that differ");
  return {
    attributes,
    size: 0n, // records are asked about through a projection
    indexed: false,
    encode(value) {
      if (typeof value !== "object" || value === null) refuse("an object with one value for each attribute");
      const held = value as Record<string, unknown>;
      return attributes.map(([name, part]) => {
        try {
          return part.encode(Object.hasOwn(held, name) ? held[name] : null) as bigint;
        } catch (problem) {
          throw new DomainError(`attribute "${name}": ${(problem as Error).message}`);
        }
      });
    },
  };
}

const readers: Record<string, (document: JsonObject) => Parts> = {
  categories,
  integers,
  interval,
  bits: bitStrings,
  text,
  items,
  record,
};

// The domain that a task describes.
export function readDomain(document: Json | undefined): Domain {
  const parts = byKind(document, readers, "a domain")(document as JsonObject);
  return { ...parts, json: document as JsonObject };
}

// The integers 0 .. size - 1.
export function categoriesOf(size: bigint): Domain {
  return readDomain({ kind: "categories", missing: "refuse", size: Number(size) });
}
