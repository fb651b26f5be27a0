// Projective geometry response: a point orthogonal to the value's, or one that is not (docs/wire-format.md, "Points").

import { integer, malformed } from "../canonical.js";
import { integers } from "../columns.js";
import { splitmix64 } from "../hash.js";
import { worst } from "../ratio.js";
import { WORD } from "../words.js";
import { indices, kind } from "./base.js";

const EXACT = BigInt(Number.MAX_SAFE_INTEGER);

// A composite would break the geometry, and with it the promise.
export function isPrime(number: number): boolean {
  for (let divisor = 2; divisor * divisor <= number; divisor++) if (number % divisor === 0) return false;
  return true;
}

const pointCount = (q: bigint, t: number): bigint => (q ** BigInt(t) - 1n) / (q - 1n);

function digitsOf(number: bigint, q: bigint, count: number): bigint[] {
  const digits = new Array<bigint>(count);
  for (let k = count - 1; k >= 0; k--, number /= q) digits[k] = number % q;
  return digits;
}

function pointAt(number: bigint, q: bigint, t: number): bigint[] {
  const first = q ** BigInt(t - 1);
  return number < first ? [1n, ...digitsOf(number, q, t - 1)] : [0n, ...pointAt(number - first, q, t - 1)];
}

function numberOf([first, ...rest]: bigint[], q: bigint): bigint {
  if (!first) return q ** BigInt(rest.length) + numberOf(rest, q);
  let scale = 1n; // 1 / first = first^(q - 2)
  for (let power = q - 2n, base = first; power > 0n; power >>= 1n, base = (base * base) % q) {
    if (power & 1n) scale = (scale * base) % q;
  }
  return rest.reduce((number, coordinate) => number * q + ((coordinate * scale) % q), 0n);
}

// A value's point: four Feistel rounds on the square of side floor(sqrt(points)), the rest in place.
function pointOf(value: bigint, points: bigint): bigint {
  let side = BigInt(Math.floor(Math.sqrt(Number(points))));
  while (side * side > points) side -= 1n;
  while ((side + 1n) * (side + 1n) <= points) side += 1n;
  if (value >= side * side) return value;
  let [left, right] = [value / side, value % side];
  for (let turn = 0n; turn < 4n; turn++) [left, right] = [right, (left + splitmix64(4n * right + turn)) % side];
  return left * side + right;
}

export const PGR = kind(["prime", "dimension"], ["orthogonal"], ({ domain, keys, coin }) => {
  const [prime, t] = [integer(keys["prime"], 2, 2 ** 31 - 1), integer(keys["dimension"], 2, 53)];
  const q = BigInt(prime);
  const points = pointCount(q, t);
  if (!isPrime(prime) || points > EXACT || indices(domain, EXACT) > points) {
    throw malformed("a prime and a dimension with a point for every value");
  }
  const [threshold, inside, outside] = [coin("orthogonal"), pointCount(q, t - 1), q ** BigInt(t - 1)];
  return {
    columns: [integers("point", points)],
    ratio: worst(threshold * outside, (WORD - threshold) * inside),
    // x solves <x, own> = 0 or 1 for the coordinate of own's leading one; the draw gives all others
    draw(code, words) {
      const own = pointAt(pointOf(code as bigint, points), q, t);
      const orthogonal = words.coin(threshold);
      const drawn = words.below(orthogonal ? inside : outside);
      const x = orthogonal ? pointAt(drawn, q, t - 1) : digitsOf(drawn, q, t - 1);
      const pivot = own.indexOf(1n);
      x.splice(pivot, 0, 0n);
      const product = x.reduce((sum, coordinate, k) => sum + coordinate * (own[k] as bigint), 0n);
      x[pivot] = ((((orthogonal ? 0n : 1n) - product) % q) + q) % q;
      return { point: [numberOf(x, q)] };
    },
  };
});
