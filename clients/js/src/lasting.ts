// Answers that are given again and again: what a device keeps of the person, of each value, and of each occasion.
//
// Of the person: what the mechanism draws once, whatever the value (Rappor's cohort). Of each value: the permanent step,
// paid for once. Of each occasion: the report, so that the same answer on the same occasion is the same bytes.

import type { Ask } from "./asks.js";
import { pack, unpack } from "./columns.js";
import type { Drawn } from "./columns.js";
import type { Code } from "./domains.js";
import type { Survey } from "./survey.js";
import type { Words } from "./words.js";

type Bytes = Uint8Array<ArrayBuffer>;

export interface Marks {
  readonly person: string;
  readonly value: string;
  readonly occasion: string; // of the value and its public columns, on this occasion
}

// What is kept already, by its mark.
export interface Known {
  kept(mark: string): Bytes | undefined;
}

// The report of a value on an occasion, and what must be written down before it is sent. Draw order: as for one report.
export async function lastingReport(
  survey: Survey,
  code: Code,
  beside: bigint[],
  marks: Marks,
  known: Known,
  words: Words,
): Promise<{ report: Bytes; fresh: Map<string, Bytes> }> {
  const { view, mechanism } = survey.ask.question as NonNullable<Ask["question"]>;
  const { personal, person, permanent, instant } = mechanism.longitudinal as NonNullable<typeof mechanism.longitudinal>;
  const fresh = new Map<string, Bytes>();
  const keep = (mark: string, bytes: Bytes): Bytes => (fresh.set(mark, bytes), bytes);

  function personOf(): Drawn {
    const kept = known.kept(marks.person);
    if (kept) return unpack(personal, kept);
    const drawn = person(words);
    keep(marks.person, pack(personal, drawn));
    return drawn;
  }

  async function memoOf(): Promise<Bytes> {
    const shown = view.apply(code, words);
    return keep(marks.value, pack(mechanism.columns, await permanent(shown, personOf(), words)));
  }

  const given = known.kept(marks.occasion);
  if (given) return { report: given, fresh };
  const memo = known.kept(marks.value) ?? (await memoOf());
  const report = survey.frame(instant(unpack(mechanism.columns, memo), words), beside, words);
  return { report: keep(marks.occasion, report), fresh };
}
