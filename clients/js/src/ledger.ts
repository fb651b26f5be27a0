// What a person has spent, in exact decimals: ten charges of 0.1 are 1.

import { decimalText } from "./canonical.js";
import { BudgetError } from "./errors.js";
import type { Charge } from "./store.js";

// Epsilon over a lifetime, and per day (UTC) if wanted; a plain number is a lifetime.
export type Budget = number | { readonly lifetime: number; readonly perDay?: number };

export interface Caps {
  readonly lifetime: string;
  readonly perDay: string | null;
}

const PLACES = 400; // more than the decimal of any double has

const exact = (text: string): bigint => {
  const [whole = "", part = ""] = text.split(".");
  return BigInt(whole + part.padEnd(PLACES, "0"));
};

const total = (charges: readonly Charge[]): bigint => charges.reduce((sum, { epsilon }) => sum + exact(epsilon), 0n);

export function readBudget(budget: unknown): Caps {
  const { lifetime, perDay } = (typeof budget === "object" && budget !== null ? budget : { lifetime: budget }) as {
    lifetime: unknown;
    perDay?: unknown;
  };
  return { lifetime: cap(lifetime), perDay: perDay === undefined ? null : cap(perDay) };
}

function cap(epsilon: unknown): string {
  if (typeof epsilon !== "number" || !(0 < epsilon && epsilon < Infinity)) {
    throw new BudgetError("expected a budget that is a finite epsilon above 0");
  }
  return decimalText(epsilon);
}

// The charge, with its day, or a refusal.
export function grant(charges: readonly Charge[], caps: Caps, charge: Omit<Charge, "day">, now: number): Charge {
  // A clock that was set back must not open a day again: the latest day on record counts.
  const day = charges.reduce((latest, other) => (other.day > latest ? other.day : latest), dayOf(now));
  const cost = exact(charge.epsilon);
  if (total(charges) + cost > exact(caps.lifetime)) {
    throw new BudgetError(`this answer would exceed the lifetime budget of ${caps.lifetime}`);
  }
  if (caps.perDay !== null && total(charges.filter((other) => other.day === day)) + cost > exact(caps.perDay)) {
    throw new BudgetError(`this answer would exceed the daily budget of ${caps.perDay}`);
  }
  return { ...charge, day };
}

const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);

// Epsilon left over the lifetime, as a decimal.
export function left(charges: readonly Charge[], caps: Caps): string {
  const rest = exact(caps.lifetime) - total(charges);
  const digits = String(rest < 0n ? 0n : rest).padStart(PLACES + 1, "0");
  return `${digits.slice(0, -PLACES)}.${digits.slice(-PLACES)}`.replace(/\.?0+$/, "");
}
