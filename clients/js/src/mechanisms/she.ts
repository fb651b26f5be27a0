// A histogram with geometric noise on every coordinate, clamped.

import { integer } from "../canonical.js";
import { integers } from "../columns.js";
import { larger, worst } from "../ratio.js";
import { WORD } from "../words.js";
import { indices, kind, LISTABLE } from "./base.js";

export const SHE = kind(["grid", "reach"], ["zero", "further"], ({ domain, keys, coin }) => {
  const size = Number(indices(domain, LISTABLE));
  const grid = integer(keys["grid"], 1, 1024);
  const reach = integer(keys["reach"], 1, Math.floor((2 ** 16 - 1 - grid) / 2));
  const [zero, further] = [coin("zero"), coin("further")];
  // the worst of one step further, and of the step between 0 and 1; two values differ by `grid` steps in two coordinates
  const step = larger(worst(2n * zero * WORD, (WORD - zero) * (WORD - further)), worst(WORD, further));
  const power = BigInt(2 * grid);
  return {
    columns: [integers("histogram", BigInt(grid + 2 * reach + 1), size)],
    ratio: [step[0] ** power, step[1] ** power],
    draw(code, words) {
      const steps = new Array<number>(size).fill(0);
      let running = steps.map(() => words.coin(zero)).flatMap((atZero, i) => (atZero ? [] : [i]));
      const signs = new Map(running.map((i) => [i, words.coin(WORD / 2n) ? -1 : 1]));
      for (let round = 0; round < grid + reach && running.length; round++) {
        for (const i of running) steps[i] = (steps[i] as number) + (signs.get(i) as number);
        running = running.filter(() => words.coin(further));
      }
      steps[Number(code)] = (steps[Number(code)] as number) + grid;
      return { histogram: steps.map((x) => BigInt(Math.min(Math.max(x, -reach), grid + reach) + reach)) };
    },
  };
});
