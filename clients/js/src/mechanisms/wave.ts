// Square Wave: a number close to the held one, or any at all, on a grid that reaches further by the wave's width.

import { integer } from "../canonical.js";
import { integers } from "../columns.js";
import { worst } from "../ratio.js";
import { WORD } from "../words.js";
import { cellsOf, kind } from "./base.js";

export const SquareWave = kind(["buckets", "half_width", "ramp"], ["near"], ({ domain, keys, coin }) => {
  const [cells, near] = [cellsOf(domain), coin("near")];
  integer(keys["buckets"], 1, Math.min(Number(cells), 2 ** 20)); // the collector's affair
  const halfWidth = integer(keys["half_width"], 0, Number(cells));
  const ramp = BigInt(integer(keys["ramp"], 1, halfWidth + 1));
  const plateau = 2n * BigInt(halfWidth) + 2n - ramp;
  const outputs = cells + 2n * BigInt(halfWidth);
  const floor = (WORD - near) * plateau; // the wave's top is near * outputs above it
  return {
    columns: [integers("cell", outputs)],
    ratio: worst(floor + near * outputs, floor),
    draw(code, words) {
      if (!words.coin(near)) return { cell: [words.below(outputs)] };
      const offset = words.below(plateau);
      return { cell: [(code as bigint) + offset + (ramp > 1n ? words.below(ramp) : 0n)] };
    },
  };
});
