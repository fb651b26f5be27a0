// A subset of the domain that holds the value more often than not.

import { bytesFor } from "../bytes.js";
import { integer } from "../canonical.js";
import { integers, packedBits, setBit, widthFor } from "../columns.js";
import { worst } from "../ratio.js";
import { WORD } from "../words.js";
import { indices, kind, LISTABLE } from "./base.js";

export const SubsetSelection = kind(["subset_size"], ["inside"], ({ domain, keys, coin }) => {
  const size = indices(domain, LISTABLE);
  const chosen = integer(keys["subset_size"], 1, Number(size) - 1);
  const inside = coin("inside");
  const asBits = bytesFor(Number(size)) <= chosen * widthFor(size);
  return {
    columns: [asBits ? packedBits("bits", Number(size)) : integers("subset", size, chosen)],
    ratio: worst(inside * (size - BigInt(chosen)), (WORD - inside) * BigInt(chosen)), // p (d - w) / ((1 - p) w)
    // Floyd's algorithm over the values other than the held one.
    draw(code, words) {
      const held = code as bigint;
      const holds = words.coin(inside);
      const picks = BigInt(holds ? chosen - 1 : chosen);
      const skip = (index: bigint): bigint => (index >= held ? index + 1n : index);
      const bounds = Array.from({ length: Number(picks) }, (_, j) => size - picks + BigInt(j));
      const taken = new Set<bigint>();
      words.belowEach(bounds).forEach((drawn, j) => {
        const pick = skip(drawn);
        taken.add(taken.has(pick) ? skip(size - 1n - picks + BigInt(j)) : pick);
      });
      if (holds) taken.add(held);
      if (!asBits) return { subset: [...taken].sort((a, b) => (a < b ? -1 : 1)) };
      const bits = new Uint8Array(bytesFor(Number(size)));
      for (const value of taken) setBit(bits, value, true);
      return { bits };
    },
  };
});
