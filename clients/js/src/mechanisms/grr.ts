// Generalized randomized response: the value, or one of the others.

import { integers } from "../columns.js";
import { worst } from "../ratio.js";
import { WORD } from "../words.js";
import { indices, kind, stayOrMove } from "./base.js";

export const GRR = kind([], ["stay"], ({ domain, coin }) => {
  const [size, stay] = [indices(domain, 1n << 32n), coin("stay")];
  return {
    columns: [integers("value", size)],
    ratio: worst(stay * (size - 1n), WORD - stay), // p / q with q = (1 - p) / (d - 1)
    disjoint: true,
    draw: (code, words) => ({ value: [stayOrMove(words, stay, code as bigint, size)] }),
  };
});
