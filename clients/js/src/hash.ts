// The local hash: privacy never depends on it, accuracy does (docs/wire-format.md, section 4).

import { sha256 } from "./bytes.js";

const MASK64 = (1n << 64n) - 1n;

export function splitmix64(value: bigint): bigint {
  let z = (value + 0x9e3779b97f4a7c15n) & MASK64;
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK64;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK64;
  return z ^ (z >> 31n);
}

// 64 well-mixed bits of a code of bytes, salted with its mechanism's digest.
export async function spreadBytes(code: Uint8Array, salt: Uint8Array): Promise<bigint> {
  return new DataView((await sha256(salt, code)).buffer).getBigUint64(0, true);
}

// 32-bit arithmetic: Math.imul multiplies, >>> shifts without a sign.
export function bucketOf(seed: bigint, z: bigint, buckets: bigint): bigint {
  let h = Number((z ^ seed) & 0xffffffffn);
  h ^= h >>> 16;
  h = Math.imul(h, 0x7feb352d);
  h ^= Number((z ^ seed) >> 32n);
  h ^= h >>> 15;
  h = Math.imul(h, 0x846ca68b);
  return (BigInt(h >>> 0) * buckets) >> 32n;
}
