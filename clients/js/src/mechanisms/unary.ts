// One bit for every value: OUE, SUE and THE differ in their thresholds only.

import { decimal, malformed } from "../canonical.js";
import { packedBits, setBit } from "../columns.js";
import { worst } from "../ratio.js";
import { WORD } from "../words.js";
import { indices, kind, LISTABLE } from "./base.js";
import type { Mechanism, Parameters } from "./base.js";

function unary({ domain, coin }: Parameters): Mechanism {
  const size = Number(indices(domain, LISTABLE));
  const [held, others] = [coin("held"), coin("others")];
  return {
    columns: [packedBits("bits", size)],
    ratio: worst(held * (WORD - others), others * (WORD - held)), // two values differ in two bits
    draw(code, words) {
      const bits = words.coinBits(others, size);
      setBit(bits, code as bigint, words.coin(held));
      return { bits };
    },
  };
}

const THRESHOLDS = ["held", "others"];

export const OUE = kind([], THRESHOLDS, unary);
export const SUE = OUE;
export const THE = kind(["theta"], THRESHOLDS, (parameters) => {
  const theta = decimal(parameters.keys["theta"]);
  if (theta < 0.5 || theta > 1) throw malformed("a theta from 0.5 to 1");
  return unary(parameters);
});
