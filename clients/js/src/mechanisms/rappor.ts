// Rappor: a Bloom filter in a cohort, flipped once for good and, if the task says so, again in every report.

import { bytesFor } from "../bytes.js";
import { decimal, integer, listOf, malformed } from "../canonical.js";
import { integers, packedBits, setBit } from "../columns.js";
import type { Drawn } from "../columns.js";
import type { Code } from "../domains.js";
import { bucketOf, splitmix64 } from "../hash.js";
import { worst } from "../ratio.js";
import { WORD } from "../words.js";
import type { Words } from "../words.js";
import type { Kind } from "./base.js";
import { spread } from "./hashing.js";

export const Rappor: Kind = {
  keys: ["bits", "hashes", "cohorts", "instant"],
  thresholds: ({ instant }) => (instant === null ? ["flip"] : ["flip", "instant_zero", "instant_one"]),
  make(parameters) {
    const { keys, coin } = parameters;
    const hashes = integer(keys["hashes"], 1, 64);
    const width = integer(keys["bits"], 2 * hashes, 2 ** 24);
    const cohorts = BigInt(integer(keys["cohorts"], 1, Math.floor(2 ** 24 / (width + 1))));
    const again = keys["instant"] !== null;
    if (again) {
      const [p, q, ...more] = listOf(keys["instant"]).map(decimal) as [number, number];
      if (more.length || !(0 < p && p < q && q < 1)) throw malformed("chances (p, q) with 0 < p < q < 1");
    }
    const [flip, power] = [coin("flip"), BigInt(2 * hashes)]; // two values differ in at most two bits a hash
    const step = worst(WORD - flip, flip);
    const personal = [integers("cohort", cohorts)];

    const person = (words: Words): Drawn => ({ cohort: [words.below(cohorts)] });

    async function permanent(code: Code, of: Drawn, words: Words): Promise<Drawn> {
      const z = await spread(parameters, code);
      const [cohort] = of["cohort"] as [bigint];
      const flips = words.coinBits(flip, width);
      const bits = new Uint8Array(bytesFor(width));
      for (let j = 0n; j < BigInt(hashes); j++) {
        setBit(bits, bucketOf(splitmix64(splitmix64(cohort) ^ j), z, BigInt(width)), true);
      }
      return { cohort: [cohort], bits: bits.map((byte, i) => byte ^ (flips[i] as number)) };
    }

    function instant(memo: Drawn, words: Words): Drawn {
      if (!again) return memo;
      const [zero, one] = [words.coinBits(coin("instant_zero"), width), words.coinBits(coin("instant_one"), width)];
      const kept = memo["bits"] as Uint8Array;
      return { ...memo, bits: kept.map((byte, i) => (byte & (one[i] as number)) | (~byte & (zero[i] as number))) };
    }

    return {
      columns: [...personal, packedBits("bits", width)],
      ratio: [step[0] ** power, step[1] ** power],
      longitudinal: { personal, person, permanent, instant },
      draw: async (code, words) => instant(await permanent(code, person(words), words), words),
    };
  },
};
