// A seed and a bucket: OLH, BLH and RandomProjection differ in how many of each there are.

import { canonical, integer } from "../canonical.js";
import { encodeText, sha256 } from "../bytes.js";
import { integers } from "../columns.js";
import type { Code } from "../domains.js";
import { bucketOf, splitmix64, spreadBytes } from "../hash.js";
import { worst } from "../ratio.js";
import { WORD } from "../words.js";
import { kind, stayOrMove } from "./base.js";
import type { Mechanism, Parameters } from "./base.js";

// 64 well-mixed bits of a code; codes of bytes are salted with the mechanism and its domain.
export async function spread({ document }: Parameters, code: Code): Promise<bigint> {
  if (typeof code === "bigint") return splitmix64(code);
  return spreadBytes(code as Uint8Array, await sha256(encodeText(canonical(document))));
}

function localHashing(
  parameters: Parameters,
  buckets: bigint,
  seeds = WORD,
  expand = (seed: bigint): bigint => seed,
): Mechanism {
  const stay = parameters.coin("stay");
  return {
    columns: [integers("seed", seeds), integers("bucket", buckets)],
    ratio: worst(stay * (buckets - 1n), WORD - stay),
    async draw(code, words) {
      const z = await spread(parameters, code);
      const seed = words.below(seeds);
      return { seed: [seed], bucket: [stayOrMove(words, stay, bucketOf(expand(seed), z, buckets), buckets)] };
    },
  };
}

export const OLH = kind(["hash_range"], ["stay"], (parameters) =>
  localHashing(parameters, BigInt(integer(parameters.keys["hash_range"], 2, 2 ** 31))),
);
export const BLH = kind([], ["stay"], (parameters) => localHashing(parameters, 2n));
export const RandomProjection = kind(["rows"], ["stay"], (parameters) => {
  const rows = BigInt(integer(parameters.keys["rows"], 2, 2 ** 32));
  return localHashing(parameters, 2n, rows, (row) => splitmix64(splitmix64(row)));
});
