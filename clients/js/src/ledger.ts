// What a person has spent, in exact decimals and fractions: ten charges of 0.1 are 1.

import { hex } from "./bytes.js";
import { decimalText } from "./canonical.js";
import { BudgetError, VeilError } from "./errors.js";
import { NOTHING, exceeds, fractionOf, sum } from "./ratio.js";
import type { Fraction } from "./ratio.js";
import { CAPS, isCaps } from "./store.js";
import type { Charge } from "./store.js";

// Epsilon over a lifetime, and if wanted per day (UTC) and for all answers to one survey together; a plain number is a
// lifetime. `delta` is what all answers together may have of it over the lifetime: none, unless it is given.
export type Budget =
  | number
  | { readonly lifetime?: number; readonly perDay?: number; readonly perSurvey?: number; readonly delta?: number };

/** What the ledger grants since a day, as exact decimals, and how that came: the caps were created, lowered or raised. */
export interface Caps {
  readonly change: "created" | "lowered" | "raised";
  readonly day: string;
  readonly lifetime: string;
  readonly perDay: string | null;
  readonly perSurvey: string | null;
  readonly delta: string;
}

// The caps that a page states, by name.
type Name = "lifetime" | "perDay" | "perSurvey" | "delta";
type Asked = { [name in Name]?: string };

const PLACES = 400; // more than the decimal of any double has

const exact = (text: string): bigint => {
  const [whole = "", part = ""] = text.split(".");
  return BigInt(whole + part.padEnd(PLACES, "0"));
};

const total = (charges: readonly Charge[]): bigint => charges.reduce((sum, { epsilon }) => sum + exact(epsilon), 0n);

export function readBudget(budget: unknown): Asked {
  const given = (typeof budget === "object" && budget !== null ? budget : { lifetime: budget }) as Record<Name, unknown>;
  const { delta } = given;
  if (delta !== undefined && (typeof delta !== "number" || !(0 <= delta && delta < 1))) {
    throw new BudgetError("expected a delta of at least 0 and below 1");
  }
  const asked: Asked = delta === undefined ? {} : { delta: decimalText(delta) };
  for (const name of ["lifetime", "perDay", "perSurvey"] as const) {
    if (given[name] !== undefined) asked[name] = cap(given[name]);
  }
  return asked;
}

function cap(epsilon: unknown): string {
  if (typeof epsilon !== "number" || !(0 < epsilon && epsilon < Infinity)) {
    throw new BudgetError("expected a budget that is a finite epsilon above 0");
  }
  return decimalText(epsilon);
}

// All caps since the ledger was created; the last ones are in force, in all tabs.
export const capsOf = (charges: readonly Charge[]): Caps[] =>
  charges.filter(isCaps).map(({ mark }) => JSON.parse(mark) as Caps);

// Every client that is open has recorded caps: without, the ledger is damaged, and what follows fails.
const inForce = (charges: readonly Charge[]): Caps => capsOf(charges).at(-1) as Caps;

// Where there is no cap per day, each one is smaller. Where there is none per survey, each one is larger: with one, a name's
// later survey may cost more than the first answer under that name.
const order = (own: string | null, name: string, cap: string): number =>
  own === null ? (name === "perDay" ? -1 : 1) : Number(exact(cap) > exact(own)) - Number(exact(cap) < exact(own));

// What to record when the ledger is opened with these caps: smaller ones are kept, for good. Or when a person raises them.
export function changeCaps(charges: readonly Charge[], asked: Asked, change: "lowered" | "raised", day: string): Charge[] {
  const own = inForce(charges) as Caps | undefined;
  const raise = change === "raised";
  const names = Object.keys(asked) as Name[];
  const orders = names.map((name) => (own ? order(own[name], name, asked[name] as string) : -1));
  if (orders.some((by) => (raise ? by < 1 : by > 0)) || (raise && !names.length) || !(own ?? asked.lifetime)) {
    const parts = names.map((name) => `${name} ${raise ? "above" : "at most"} ${own?.[name] ?? "none"}`);
    throw new BudgetError(`expected ${parts.join(", ") || "a lifetime's budget"}; client.raiseCaps() raises what the ledger keeps`);
  }
  if (own && !orders.some(Boolean)) return [];
  const caps = { perDay: null, perSurvey: null, delta: "0", ...own, ...asked, change: own ? change : "created", day };
  // a record of caps has no day of its own, which would move the day on which budgets count
  return [{ day: "", task: CAPS, epsilon: "0", mark: JSON.stringify(caps), kept: new Uint8Array() }];
}

// What a charge becomes once its answer is delivered, or refused for good: without what recognises and repeats it. Without
// a report, that is done with all answers to a task, and what belongs to the person there goes (null).
export const forgetting =
  (task: string, report?: Uint8Array) =>
  (charge: Charge): Charge | null => {
    const free = charge.epsilon === "0";
    if (charge.task !== task || (report && (free || hex(charge.kept) !== hex(report)))) return charge;
    return free ? null : { ...charge, mark: "", kept: new Uint8Array() };
  };

// Whether an answer to the task was paid for and forgotten: nobody can tell whether another one is the same.
export const isForgotten = (charges: readonly Charge[], task: string): boolean =>
  charges.some((charge) => charge.task === task && charge.epsilon !== "0" && charge.mark === "");

const totalDelta = (charges: readonly Charge[]): Fraction =>
  charges.flatMap(({ delta }) => (delta === undefined ? [] : [readFraction(delta)])).reduce(sum, NOTHING);

export const fractionText = ([above, under]: Fraction): string => `${above}/${under}`;

const readFraction = (text: string): Fraction => text.split("/").map(BigInt) as [bigint, bigint];

// The charge, with its day, or a refusal.
export function grant(charges: readonly Charge[], charge: Omit<Charge, "day">, now: number): Charge {
  const caps = inForce(charges);
  const delta = fractionOf(caps.delta);
  const day = dayFor(charges, now);
  const cost = exact(charge.epsilon);
  if (charge.delta !== undefined) {
    if (!delta[0]) throw new BudgetError("this survey keeps its epsilon only up to a delta, and the budget has none");
    if (exceeds(sum(totalDelta(charges), readFraction(charge.delta)), delta)) {
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
        : `; the ledger is at ${day} and this device's clock at ${today}. If the ledger's day is wrong, move it back with` +
          " client.moveClockBack()";
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
        ` ${first.delta ?? 0}. To answer all the same, client.raiseCaps({ perSurvey })`,
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
export function deltaLeft(charges: readonly Charge[]): Fraction {
  const [above, under] = totalDelta(charges);
  const rest = sum(fractionOf(inForce(charges).delta), [-above, under]);
  return rest[0] < 0n ? NOTHING : rest;
}

// Epsilon left over the lifetime, as a decimal.
export function left(charges: readonly Charge[]): string {
  const rest = exact(inForce(charges).lifetime) - total(charges);
  const digits = String(rest < 0n ? 0n : rest).padStart(PLACES + 1, "0");
  return `${digits.slice(0, -PLACES)}.${digits.slice(-PLACES)}`.replace(/\.?0+$/, "");
}
