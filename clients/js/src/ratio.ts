// The promise, exactly: ratios and deltas as fractions of integers; e^eps by its series (docs/wire-format.md).

import { SurveyError } from "./errors.js";

export type Fraction = readonly [above: bigint, under: bigint];

// The likelihood ratio of a report, at least 1.
export type Ratio = Fraction;

// What a report promises: the ratio, but for a probability of delta.
export interface Guarantee {
  readonly ratio: Ratio;
  readonly delta: Fraction;
}

export const NOTHING: Fraction = [0n, 1n];

const UNIT = 10n ** 80n;

// Just below 10^80 e^x for x = numerator / denominator: every term of the series is rounded down.
function expBelow(numerator: bigint, denominator: bigint): bigint {
  let [sum, term] = [0n, UNIT];
  for (let k = 1n; term > 0n; k++) {
    sum += term;
    term = (term * numerator) / (denominator * k);
  }
  return sum;
}

// A decimal string as numerator and denominator.
export function fractionOf(text: string): [bigint, bigint] {
  const [whole = "", part = ""] = text.split(".");
  return [BigInt(whole + part), 10n ** BigInt(part.length)];
}

const within = ([above, under]: Ratio, numerator: bigint, denominator: bigint): boolean =>
  above * UNIT <= expBelow(numerator, denominator) * under;

// Refuses a ratio above the declared epsilon, a decimal string.
export function keepPromise(ratio: Ratio, epsilon: string): Ratio {
  if (!within(ratio, ...fractionOf(epsilon))) {
    throw new SurveyError("ratio", `the survey's ratio is above its declared epsilon of ${epsilon}`);
  }
  return ratio;
}

export const larger = (a: Ratio, b: Ratio): Ratio => (a[0] * b[1] >= b[0] * a[1] ? a : b);

export const exceeds = (a: Fraction, b: Fraction): boolean => a[0] * b[1] > b[0] * a[1];

// In lowest terms, so that sums of many stay short.
export function sum(a: Fraction, b: Fraction): Fraction {
  const [above, under] = [a[0] * b[1] + b[0] * a[1], a[1] * b[1]];
  let [divisor, rest] = [under, above];
  while (rest) [divisor, rest] = [rest, divisor % rest];
  return [above / divisor, under / divisor];
}

// How many sets of k there are of n things.
export function choose(n: number, k: number): bigint {
  let found = 1n;
  for (let i = 0; i < k; i++) found = (found * BigInt(n - i)) / BigInt(i + 1);
  return found;
}

// The nearest double, for display.
export const numberOf = ([above, under]: Fraction): number => Number((above << 1000n) / under) / 2 ** 1000;

export const product = (a: Ratio, b: Ratio): Ratio => [a[0] * b[0], a[1] * b[1]];

// Whichever way round is worse.
export function worst(above: bigint, under: bigint): Ratio {
  if (above <= 0n || under <= 0n)
    throw new SurveyError("ratio", "the survey promises nothing: a threshold gives values away");
  return larger([above, under], [under, above]);
}

// The smallest double that is not below ln(ratio): what an answer costs.
export function epsilonOf(ratio: Ratio): number {
  const [above, under] = ratio;
  if (above === under) return 0;
  const excess = Number(((above - under) << 256n) / under) / 2 ** 256;
  if (!(excess < Infinity)) throw new SurveyError("ratio", "the survey promises next to nothing");
  const covers = (epsilon: number): boolean => epsilon > 0 && within(ratio, ...exactly(epsilon));
  let epsilon = Math.log1p(excess);
  while (!covers(epsilon)) epsilon = neighbour(epsilon, 1n);
  for (let next = neighbour(epsilon, -1n); covers(next); next = neighbour(next, -1n)) epsilon = next;
  return epsilon;
}

// A double as a fraction: doubling is exact.
function exactly(number: number): [bigint, bigint] {
  let denominator = 1n;
  for (; !Number.isInteger(number); denominator *= 2n) number *= 2;
  return [BigInt(number), denominator];
}

// The next double above (step 1) or below (step -1) one that is not negative.
function neighbour(number: number, step: bigint): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number);
  view.setBigUint64(0, view.getBigUint64(0) + step);
  return view.getFloat64(0);
}
