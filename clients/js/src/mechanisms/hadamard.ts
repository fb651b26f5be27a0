// One entry of the value's column of a Hadamard matrix, kept or flipped: of any row, or of an odd one.

import { integers } from "../columns.js";
import { worst } from "../ratio.js";
import { WORD } from "../words.js";
import { indices, kind, LISTABLE } from "./base.js";
import type { Mechanism } from "./base.js";

function parity(number: bigint): bigint {
  for (let shift = 32n; shift > 0n; shift >>= 1n) number ^= number >> shift;
  return number & 1n;
}

// One of as many rows as a power of two has to have for these columns, and the sign in it; `mask` says for a row which
// bits of the value the sign hangs on.
function signedRow(columns: bigint, keep: bigint, mask: (row: bigint) => bigint): Mechanism {
  let order = 1n;
  while (order < columns) order *= 2n;
  return {
    columns: [integers("signed_row", 2n * order)],
    ratio: worst(keep, WORD - keep),
    draw(code, words) {
      const row = words.below(order);
      const bit = parity(mask(row) & (code as bigint)) ^ (words.coin(keep) ? 0n : 1n);
      return { signed_row: [2n * row + bit] };
    },
  };
}

export const HadamardResponse = kind([], ["keep"], ({ domain, coin }) =>
  signedRow(indices(domain, 1n << 63n), coin("keep"), (row) => row),
);
// The odd rows alone: they tell the two values of a pair, 2 a and 2 a + 1, apart.
export const HaarResponse = kind([], ["keep"], ({ domain, coin }) =>
  signedRow((indices(domain, LISTABLE) + 1n) / 2n, coin("keep"), (row) => 2n * row + 1n),
);
