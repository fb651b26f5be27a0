// What a collector says about a survey, for people: its name, which wave of it this is, and the question by language.

import { integer, isObject, malformed, parse, readTime, take } from "./canonical.js";
import { SurveyError } from "./errors.js";

export interface About {
  readonly name: string;
  readonly wave: number; // from 1
  readonly validUntil: number; // milliseconds
  readonly texts: ReadonlyMap<string, string>; // by language, as "de-CH"
}

// Out of the bytes that were signed.
export function readAbout(bytes: Uint8Array, task: string): About {
  const keys = ["version", "task", "name", "wave", "texts", "valid_until"];
  const [version, about, name, wave, texts, until] = take(parse(bytes), "veil-survey-about", ...keys);
  integer(version, 1, 1);
  if (about !== task) throw new SurveyError("task", "expected what is said about this survey, and not about another");
  const spoken = isObject(texts) ? Object.entries(texts) : [["", null]];
  if (!isName(name) || !spoken.every((pair): pair is [string, string] => typeof pair[1] === "string")) {
    throw malformed("a survey's name, and texts by language");
  }
  const validUntil = readTime(until);
  return { name, wave: integer(wave, 1, Number.MAX_SAFE_INTEGER), texts: new Map(spoken), validUntil };
}

export const isName = (text: unknown): text is string =>
  typeof text === "string" && /^[a-z0-9][a-z0-9-]{0,62}$/.test(text);

// The text in the first of these languages that there is one in; else in English, else in any. A region finds its
// language, a language its regions, and one region another.
export function bestText(texts: ReadonlyMap<string, string>, languages: readonly string[]): string | null {
  const known = new Map([...texts.keys()].sort().map((tag) => [tag.toLowerCase(), texts.get(tag) as string]));
  for (const wanted of [...languages, "en"].map((tag) => String(tag).toLowerCase())) {
    for (let tag = wanted; tag; tag = tag.slice(0, Math.max(tag.lastIndexOf("-"), 0))) {
      if (known.has(tag)) return known.get(tag) as string;
    }
    for (const [tag, text] of known) if (mainOf(tag) === mainOf(wanted)) return text;
  }
  return [...known.values()][0] ?? null;
}

const mainOf = (tag: string): string => tag.split("-")[0] as string;
