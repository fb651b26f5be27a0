// A seed and a bucket: OLH, BLH, RandomProjection and LinearHashing differ in how many of each there are, and in the hash.

import { bigEndian, bytesFor, encodeText, fromBigEndian, sha256 } from "../bytes.js";
import { canonical, integer, malformed } from "../canonical.js";
import { integers } from "../columns.js";
import type { Code } from "../domains.js";
import { bucketOf, splitmix64, spreadBytes } from "../hash.js";
import { worst } from "../ratio.js";
import { WORD } from "../words.js";
import { kind, stayOrMove } from "./base.js";
import type { Mechanism, Parameters } from "./base.js";
import { isPrime } from "./pgr.js";

const HASHES = 1n << 32n;

// 64 well-mixed bits of a code; codes of bytes are salted with the mechanism and its domain.
export async function spread({ document }: Parameters, code: Code): Promise<bigint> {
  if (typeof code === "bigint") return splitmix64(code);
  return spreadBytes(code as Uint8Array, await sha256(encodeText(canonical(document))));
}

function localHashing(
  parameters: Parameters,
  buckets: bigint,
  seeds = WORD,
  // what is hashed of a code, and how far its bucket is moved on under a seed
  split = (code: Code): [Code, (seed: bigint) => bigint] => [code, () => 0n],
): Mechanism {
  const stay = parameters.coin("stay");
  return {
    columns: [integers("seed", seeds), integers("bucket", buckets)],
    ratio: worst(stay * (buckets - 1n), WORD - stay),
    async draw(code, words) {
      const [hashed, move] = split(code);
      const z = await spread(parameters, hashed);
      const seed = words.below(seeds);
      // a short seed stands for 64 bits, well mixed
      const mixed = seeds < WORD ? splitmix64(splitmix64(seed)) : seed;
      const own = (bucketOf(mixed, z, buckets) + move(seed)) % buckets;
      return { seed: [seed], bucket: [stayOrMove(words, stay, own, buckets)] };
    },
  };
}

// With a seed of one's own, values are hashed as by a random function: into intervals of 2^32 hashes, equal up to one.
function independently(parameters: Parameters, buckets: bigint): Mechanism {
  const [narrow, wider] = [HASHES / buckets, HASHES % buckets];
  return {
    ...localHashing(parameters, buckets),
    moment(values) {
      const power = BigInt(values);
      return [(buckets - wider) * narrow ** power + wider * (narrow + 1n) ** power, HASHES ** power];
    },
  };
}

export const OLH = kind(["hash_range", "seed_bytes"], ["stay"], (parameters) => {
  const { keys } = parameters;
  const buckets = BigInt(integer(keys["hash_range"], 2, 2 ** 31));
  // 2^32 seeds are too few to promise that sets of values share buckets as rarely as under a random function
  return keys["seed_bytes"] ? localHashing(parameters, buckets, HASHES) : independently(parameters, buckets);
});
export const BLH = kind([], ["stay"], (parameters) => independently(parameters, 2n));
export const RandomProjection = kind(["rows"], ["stay"], (parameters) =>
  localHashing(parameters, 2n, BigInt(integer(parameters.keys["rows"], 2, 2 ** 32))),
);

// The inner product of two numbers' digits to the base q, modulo q.
function product(a: bigint, b: bigint, q: bigint): bigint {
  let total = 0n;
  for (; a && b; a /= q, b /= q) total += (a % q) * (b % q);
  return total % q;
}

// The bits before a suffix are hashed as in OLH; the suffix moves the bucket on, linearly (docs/wire-format.md, "Hash").
export const LinearHashing = kind(["hash_range", "suffix"], ["stay"], (parameters) => {
  const { domain, keys } = parameters;
  const prime = integer(keys["hash_range"], 2, 2 ** 16 - 1);
  const bits = (domain.size - 1n).toString(2).length;
  const [q, suffix] = [BigInt(prime), integer(keys["suffix"], 1, Math.min(bits, 32))];
  const [low, width] = [BigInt(suffix), bits - suffix];
  let cells = q;
  while (cells < 1n << low) cells *= q;
  if (!isPrime(prime) || cells > 1n << 28n) throw malformed("a prime, and a suffix of at most 2^28 cells");
  return localHashing(parameters, q, WORD, (code) => {
    const number = typeof code === "bigint" ? code : fromBigEndian(code as Uint8Array);
    const [before, last] = [number >> low, number & ((1n << low) - 1n)];
    const move = (seed: bigint): bigint => product(splitmix64(seed ^ 0xd1b54a32d192ed03n) % cells, last, q);
    return [width > 64 ? bigEndian(before, bytesFor(width)) : before, move];
  });
});
