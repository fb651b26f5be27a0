// What a survey promises to the person who answers it, as data: signed by the collector, or computed from what is signed.

import { fractionText } from "./ledger.js";
import type { Publication } from "./publication.js";

/** What `statements` of "veil-client/statements.js" turns into sentences. */
export interface Terms {
  /** How much more likely a report can be under one answer than under another: a fraction, as "6/2". */
  readonly ratio: string;
  /** The probability with which it can be more, as a fraction; "0/1" nearly always. */
  readonly delta: string;
  /** The logarithm of the ratio, rounded up. */
  readonly epsilon: number;
  /** True if the ratio is that of all reports of one answer together (Rappor). */
  readonly lifetime: boolean;
  /** Names of what is sent and stored in clear beside the report. */
  readonly publicColumns: readonly string[];
  /** Seconds to which the collector keeps the time of a report. */
  readonly precision: number;
  /** Days after closing until the collector erases the reports; null where it names none. */
  readonly keepDays: number | null;
  /** The collector's address. */
  readonly collector: string;
}

/** @internal */
export function termsOf({ survey, precision, keepDays }: Publication, collector: string): Terms {
  const { ratio, delta, lifetime } = survey.ask;
  return {
    ratio: fractionText(ratio),
    delta: fractionText(delta),
    epsilon: Number(survey.cost),
    lifetime,
    publicColumns: [...survey.publicNames],
    precision,
    keepDays,
    collector,
  };
}
