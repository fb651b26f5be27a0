// Numbers for a mean: rounded to one of the two ends, or reported from a window of steps that moves with the number.

import { integer } from "../canonical.js";
import { integers } from "../columns.js";
import { worst } from "../ratio.js";
import { WORD } from "../words.js";
import { cellsOf, kind } from "./base.js";

export const StochasticRounding = kind([], ["keep"], ({ domain, coin }) => {
  const [last, keep] = [cellsOf(domain) - 1n, coin("keep")];
  return {
    columns: [integers("sign", 2n)],
    ratio: worst(keep, WORD - keep),
    draw(code, words) {
      const high = words.below(last) < (code as bigint);
      return { sign: [high === words.coin(keep) ? 1n : 0n] };
    },
  };
});

export const Piecewise = kind(["steps", "window"], ["inside"], ({ domain, keys, coin }) => {
  const [last, inside] = [cellsOf(domain) - 1n, coin("inside")];
  const steps = integer(keys["steps"], 2, 2 ** 24);
  const window = BigInt(integer(keys["window"], 1, steps - 1));
  const others = BigInt(steps) - window; // also how far the window travels from the first cell to the last
  return {
    columns: [integers("step", BigInt(steps))],
    ratio: worst(inside * others, (WORD - inside) * window),
    draw(code, words) {
      const way = (code as bigint) * others;
      const start = way / last + (words.below(last) < way % last ? 1n : 0n);
      if (words.coin(inside)) return { step: [start + words.below(window)] };
      const drawn = words.below(others);
      return { step: [drawn >= start ? drawn + window : drawn] };
    },
  };
});
