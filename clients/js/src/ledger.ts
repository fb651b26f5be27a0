// What a person has spent, in exact decimals and fractions: ten charges of 0.1 are 1.

import { decimalText } from "./canonical.js";
import { BudgetError, VeilError } from "./errors.js";
import { NOTHING, exceeds, fractionOf, sum } from "./ratio.js";
import type { Fraction } from "./ratio.js";
import type { Charge } from "./store.js";

// Epsilon over a lifetime, and if wanted per day (UTC) and for all answers to one survey together; a plain number is a
// lifetime. `delta` is what all answers together may have of it over the lifetime: none, unless it is given.
export type Budget =
  | number
  | { readonly lifetime: number; readonly perDay?: number; readonly perSurvey?: number; readonly delta?: number };

export interface Caps {
  readonly lifetime: string;
  readonly perDay: string | null;
  readonly perSurvey: string | null;
  readonly delta: Fraction;
}

const PLACES = 400; // more than the decimal of any double has

const exact = (text: string): bigint => {
  const [whole = "", part = ""] = text.split(".");
  return BigInt(whole + part.padEnd(PLACES, "0"));
};

const total = (charges: readonly Charge[]): bigint => charges.reduce((sum, { epsilon }) => sum + exact(epsilon), 0n);

export function readBudget(budget: unknown): Caps {
  const { lifetime, perDay, perSurvey, delta } = (typeof budget === "object" && budget !== null ? budget : { lifetime: budget }) as {
    lifetime: unknown;
    perDay?: unknown;
    perSurvey?: unknown;
    delta?: unknown;
  };
  if (delta !== undefined && (typeof delta !== "number" || !(0 <= delta && delta < 1))) {
    throw new BudgetError("expected a delta of at least 0 and below 1");
  }
  return {
    lifetime: cap(lifetime),
    perDay: perDay === undefined ? null : cap(perDay),
    perSurvey: perSurvey === undefined ? null : cap(perSurvey),
    delta: delta === undefined ? NOTHING : fractionOf(decimalText(delta)),
  };
}

function cap(epsilon: unknown): string {
  if (typeof epsilon !== "number" || !(0 < epsilon && epsilon < Infinity)) {
    throw new BudgetError("expected a budget that is a finite epsilon above 0");
  }
  return decimalText(epsilon);
}

const totalDelta = (charges: readonly Charge[]): Fraction =>
  charges.flatMap(({ delta }) => (delta === undefined ? [] : [readFraction(delta)])).reduce(sum, NOTHING);

export const fractionText = ([above, under]: Fraction): string => `${above}/${under}`;

const readFraction = (text: string): Fraction => text.split("/").map(BigInt) as [bigint, bigint];

// The charge, with its day, or a refusal.
export function grant(charges: readonly Charge[], caps: Caps, charge: Omit<Charge, "day">, now: number): Charge {
  const day = dayFor(charges, now);
  const cost = exact(charge.epsilon);
  if (charge.delta !== undefined) {
    if (!caps.delta[0]) throw new BudgetError("this survey keeps its epsilon only up to a delta, and the budget has none");
    if (exceeds(sum(totalDelta(charges), readFraction(charge.delta)), caps.delta)) {
      throw new BudgetError("this answer would exceed the delta of the lifetime's budget");
    }
  }
  if (total(charges) + cost > exact(caps.lifetime)) {
    throw new BudgetError(`this answer would exceed the lifetime budget of ${caps.lifetime}`);
  }
  checkSurvey(charges, caps, charge);
  if (caps.perDay !== null && total(counted(charges, day)) + cost > exact(caps.perDay)) {
    const today = dayOf(now);
    const ahead =
      day === today
        ? ""
        : `; the ledger is at ${day} and this device's clock at ${today}, and no new day begins before the ledger's is` +
          " over. If the ledger's day is wrong, move it back with client.moveClockBack()";
    throw new BudgetError(`this answer would exceed the daily budget of ${caps.perDay}${ahead}`);
  }
  return { ...charge, day };
}

// A collector chooses what it asks under a name, and at which eps: more than the first answer cost needs a cap per survey.
function checkSurvey(charges: readonly Charge[], { perSurvey }: Caps, { task, epsilon, delta, series }: Omit<Charge, "day">): void {
  if (perSurvey !== null) {
    const mine = charges.filter((charge) => charge.task === task);
    if (total(mine) + exact(epsilon) <= exact(perSurvey)) return;
    throw new BudgetError(`this answer would exceed the budget of ${perSurvey} for one survey`);
  }
  const first = series !== undefined && charges.find((charge) => charge.series === series);
  if (!first) return;
  const more = exceeds(readFraction(delta ?? "0/1"), readFraction(first.delta ?? "0/1"));
  if (more || exact(epsilon) > exact(first.epsilon)) {
    throw new BudgetError(
      `an answer costs eps ${epsilon} and delta ${delta ?? 0}; to the first survey of this name it cost ${first.epsilon} and` +
        ` ${first.delta ?? 0}. To answer all the same, state what one survey may cost (perSurvey)`,
    );
  }
}

// A clock that was set back must not open a day again: the latest day on record counts, since the last move back.
export const dayFor = (charges: readonly Charge[], now: number): string => latest(charges, dayOf(now));

const latest = (charges: readonly Charge[], today: string): string =>
  charges
    .slice(Math.max(0, charges.findLastIndex(isMove)))
    .reduce((day, other) => (other.day > day ? other.day : day), today);

// The charges that count on a day: its own, and those of later days before a move back to it.
function counted(charges: readonly Charge[], day: string): readonly Charge[] {
  const move = charges.findLastIndex((charge) => isMove(charge) && charge.day === day);
  return charges.filter((charge, i) => charge.day === day || (i < move && charge.day > day));
}

const CLOCK = "clock:"; // in place of a task: a record that moves the ledger's day back; its mark is the day before
const isMove = ({ task }: Charge): boolean => task === CLOCK;

// The record that sets the ledger's day back, after a wrong clock has set it forward. No budget is returned.
export function moveBack(charges: readonly Charge[], day: string, today: string): Charge {
  const before = latest(charges, "");
  if (!/^\d{4}-\d\d-\d\d$/.test(day) || day >= before) {
    throw new VeilError("clock", `expected a day before ${before || "the first charge"}, the ledger's latest, as 2026-01-31`);
  }
  if (day < today) {
    throw new VeilError("clock", `expected this device's day, ${today}, or a later one, got ${day}`); // else it would not count today
  }
  return { day, task: CLOCK, epsilon: "0", mark: before, kept: new Uint8Array() };
}

export const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);

// Delta left over the lifetime.
export function deltaLeft(charges: readonly Charge[], caps: Caps): Fraction {
  const [above, under] = totalDelta(charges);
  const rest = sum(caps.delta, [-above, under]);
  return rest[0] < 0n ? NOTHING : rest;
}

// Epsilon left over the lifetime, as a decimal.
export function left(charges: readonly Charge[], caps: Caps): string {
  const rest = exact(caps.lifetime) - total(charges);
  const digits = String(rest < 0n ? 0n : rest).padStart(PLACES + 1, "0");
  return `${digits.slice(0, -PLACES)}.${digits.slice(-PLACES)}`.replace(/\.?0+$/, "");
}
