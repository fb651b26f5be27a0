// Documents: canonical JSON (RFC 8785) without floats or integers from 2^53 on, read strictly.

import { encodeText, hex, sha256 } from "./bytes.js";
import { SurveyError } from "./errors.js";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

export const malformed = (expected: string): SurveyError => new SurveyError("form", `expected ${expected}`);

// Keys are sorted by UTF-16 code units, as RFC 8785 wants and as `sort` does; JSON.stringify escapes strings its way.
export function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const parts = Object.keys(value)
      .sort()
      .map((key) => `${canonical(key)}:${canonical(value[key] as Json)}`);
    return `{${parts.join(",")}}`;
  }
  if (typeof value === "number" && !Number.isSafeInteger(value)) throw malformed("integers below 2^53, and no floats");
  if (typeof value === "string" && /\p{Surrogate}/u.test(value)) throw malformed("strings of Unicode");
  return JSON.stringify(value);
}

export const digest = async (document: Json): Promise<string> => hex(await sha256(encodeText(canonical(document))));

const MOST_DEPTH = 64;
const MOST_NODES = 2 ** 21; // values and keys

// JSON within limits of depth and of values, which are counted before anything is parsed; null for all else.
export function readJson(bytes: Uint8Array): Json {
  let [depth, nodes, inside] = [0, 0, false];
  for (let i = 0; i < bytes.length; i++) {
    const sign = bytes[i] as number;
    if (sign === 0x22) inside = !inside;
    else if (inside) i += Number(sign === 0x5c); // what a backslash escapes
    else if (sign === 0x2c || sign === 0x3a) nodes++;
    else if (sign === 0x5b || sign === 0x7b) {
      nodes++;
      if (++depth > MOST_DEPTH) return null;
    } else if (sign === 0x5d || sign === 0x7d) depth--;
  }
  if (nodes > MOST_NODES) return null;
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)) as Json;
  } catch {
    return null; // what the text says is not repeated: it comes from elsewhere
  }
}

const isSame = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && a.every((byte, i) => byte === b[i]);

// A document that stands in its canonical form. That refuses repeated keys, floats and spaces all at once.
export function parse(bytes: Uint8Array): Json {
  const document = readJson(bytes);
  if (document !== null && isSame(encodeText(canonical(document)), bytes)) return document;
  throw malformed("a document in canonical JSON");
}

// The values of exactly these keys; refuses an object with fewer, more or others.
export function take(document: Json | undefined, kind: string, ...keys: string[]): Json[] {
  if (isObject(document) && document["kind"] === kind) {
    const found = Object.keys(document);
    if (found.length === keys.length + 1 && keys.every((key) => Object.hasOwn(document, key))) {
      return keys.map((key) => document[key] as Json);
    }
  }
  throw malformed(`an object of kind "${kind}" with the keys ${keys.join(", ") || "none"}`);
}

// What the reader of the document's kind makes of it; refuses a kind that is not listed.
export function byKind<Reader>(document: Json | undefined, readers: Record<string, Reader>, what: string): Reader {
  const kind = isObject(document) ? document["kind"] : undefined;
  if (typeof kind === "string" && Object.hasOwn(readers, kind)) return readers[kind] as Reader;
  throw malformed(`${what}: one of ${Object.keys(readers).join(", ")}`);
}

export const isObject = (document: Json | undefined): document is JsonObject =>
  typeof document === "object" && document !== null && !Array.isArray(document);

export function listOf(document: Json | undefined): Json[] {
  if (!Array.isArray(document)) throw malformed("a list");
  return document;
}

export function pairsOf(document: Json | undefined): [Json, Json][] {
  return listOf(document).map((pair) => {
    if (!Array.isArray(pair) || pair.length !== 2) throw malformed("a list of pairs");
    return pair as [Json, Json];
  });
}

// Different sets of integers from 0 to `last`, at least one and each increasing.
export function setsOf(document: Json | undefined, last: number): number[][] {
  const sets = listOf(document).map((set) => listOf(set).map((number) => integer(number, 0, last)));
  const rising = (set: number[]) => set.length && set.every((number, at) => !at || (set[at - 1] as number) < number);
  const different = new Set(sets.map(String)).size === sets.length;
  if (!sets.length || sets.length > 2 ** 20 || !different || !sets.every(rising)) {
    throw malformed("different sets of numbers, each increasing");
  }
  return sets;
}

export function integer(document: Json | undefined, least: number, most: number): number {
  if (!Number.isSafeInteger(document) || (document as number) < least || (document as number) > most) {
    throw malformed(`an integer from ${least} to ${most}`);
  }
  return document as number;
}

// Milliseconds since 1970, of a time as 2026-01-31T12:00:00Z.
export function readTime(document: Json | undefined): number {
  const time = typeof document === "string" ? Date.parse(document) : NaN;
  if (Number.isNaN(time) || timeText(time) !== document) throw malformed("times in UTC, to the second");
  return time;
}

export const timeText = (time: number): string => new Date(time).toISOString().replace(".000Z", "Z");

// The double that a decimal string stands for; the string must be the one that veil writes for it.
export function decimal(document: Json | undefined): number {
  const number = Number(document);
  if (typeof document !== "string" || !Number.isFinite(number) || decimalText(number) !== document) {
    throw malformed("a decimal string, the shortest");
  }
  return number;
}

// The shortest decimal that reads back as the number, without exponent.
export function decimalText(number: number): string {
  if (Object.is(number, -0)) return "-0";
  const found = /^(-?)(\d+)(?:\.(\d+))?e([+-]\d+)$/.exec(String(number));
  if (found === null) return String(number);
  const [, sign, whole = "", part = "", exponent] = found;
  const [digits, point] = [whole + part, whole.length + Number(exponent)];
  if (point <= 0) return `${sign}0.${"0".repeat(-point)}${digits}`;
  const rest = digits.slice(point);
  return sign + digits.slice(0, point).padEnd(point, "0") + (rest && `.${rest}`);
}
