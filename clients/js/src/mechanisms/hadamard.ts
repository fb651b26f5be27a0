// One entry of the value's column of a Hadamard matrix, kept or flipped.

import { integers } from "../columns.js";
import { worst } from "../ratio.js";
import { WORD } from "../words.js";
import { indices, kind } from "./base.js";

function parity(number: bigint): bigint {
  for (let shift = 32n; shift > 0n; shift >>= 1n) number ^= number >> shift;
  return number & 1n;
}

export const HadamardResponse = kind([], ["keep"], ({ domain, coin }) => {
  const [size, keep] = [indices(domain, 1n << 63n), coin("keep")];
  let order = 1n;
  while (order < size) order *= 2n;
  return {
    columns: [integers("signed_row", 2n * order)],
    ratio: worst(keep, WORD - keep),
    draw(code, words) {
      const row = words.below(order);
      const bit = parity(row & (code as bigint)) ^ (words.coin(keep) ? 0n : 1n);
      return { signed_row: [2n * row + bit] };
    },
  };
});
