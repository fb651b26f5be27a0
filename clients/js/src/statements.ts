// What to tell a person before they answer, made from what the signed survey promises. A module of its own, so that a
// page that says it otherwise does not load it. `veil.device.statements` says the same in Python, to the letter.

import type { Terms } from "./promise.js";

const [WEAK, MOST] = [3, 10]; // eps per report, above which a survey protects weakly, or hardly
const HOUR = 3600;
const UNITS = [[86_400, "day"], [HOUR, "hour"], [60, "minute"], [1, "second"]] as const;

/** Sentences by topic, in the order in which to show them. `weak` is there only if a report can tell much. */
export interface Statements {
  readonly odds: string;
  readonly weak?: string;
  readonly public: string;
  readonly time: string;
  readonly kept: string;
  readonly withdrawal: string;
  readonly address: string;
}

/** What `client.terms` mean for the person who answers. */
export function statements({ ratio, delta, epsilon, lifetime, publicColumns, precision, keepDays, collector }: Terms): Statements {
  const columns = publicColumns.join(", ");
  const fine = precision < HOUR ? " This is finer than an hour, and can show which report is yours." : "";
  return {
    odds: odds(fraction(ratio), fraction(delta), lifetime),
    ...weak(epsilon),
    public: columns
      ? `Sent and stored in clear beside your report: ${columns}. This can identify you.`
      : "Your report carries nothing else about you in clear.",
    time: `The time of your report is kept to ${duration(precision)}.${fine}`,
    kept: `The collector at ${collector} keeps the report${until(keepDays)}`,
    withdrawal: "Once your report is counted, it cannot be withdrawn.",
    address: "While your device sends it, the collector and the network see your device's address.",
  };
}

// With a delta, the certainty is the probability of a right guess, (ratio + delta) / (ratio + 1), averaged over reports.
function odds([above, under]: Fraction, [likely, of]: Fraction, lifetime: boolean): string {
  const scale = above < 10n * under ? 100n : above < 100n * under ? 10n : 1n;
  const times = decimal(ceiling(above * scale, under), scale);
  const permille = ceiling(1000n * (above * of + likely * under), (above + under) * of);
  const sure = permille === 1000n ? "almost 100 %" : `at most ${decimal(permille, 10n)} %`;
  const reports = lifetime ? "All reports of one answer together" : "Your report";
  const told = likely
    ? `Whoever holds two answers for equally likely guesses yours right with a probability of ${sure}, on average over what a report may say.`
    : `${reports} can make your answer at most ${times} times as likely as another: whoever holds the two for equally likely can then be ${sure} sure.`;
  return `${told} A changed answer is one more report, and tells more.`;
}

function weak(epsilon: number): { weak?: string } {
  if (epsilon > MOST) return { weak: `This hardly protects your answer: eps is above ${MOST}.` };
  return epsilon > WEAK ? { weak: `This protects your answer weakly: eps is above ${WEAK}.` } : {};
}

function until(days: number | null): string {
  if (days === null) return ". It names no day on which it erases it.";
  return ` until ${days} day${days === 1 ? "" : "s"} after the survey is closed. Counts stay, and backups may.`;
}

// A number of seconds in the largest unit that divides it.
function duration(seconds: number): string {
  const [size, unit] = UNITS.find(([size]) => seconds % size === 0) as readonly [number, string];
  return `${seconds / size} ${unit}${seconds === size ? "" : "s"}`;
}

type Fraction = readonly [bigint, bigint];

const fraction = (text: string): Fraction => text.split("/").map(BigInt) as unknown as Fraction;

const ceiling = (above: bigint, under: bigint): bigint => (above + under - 1n) / under;

const grouped = (number: bigint): string => String(number).replace(/\B(?=(\d{3})+$)/g, ",");

// A number of tenths or hundredths, without zeros at its end.
function decimal(scaled: bigint, scale: bigint): string {
  const rest = String(scaled % scale + scale).slice(1).replace(/0+$/, "");
  return grouped(scaled / scale) + (rest && `.${rest}`);
}
