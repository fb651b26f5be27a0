// The mechanisms that a task may name, and how one is read: strictly, and only if it keeps its promise.

import { byKind, decimal, malformed, take } from "../canonical.js";
import type { Json, JsonObject } from "../canonical.js";
import type { Domain } from "../domains.js";
import { keepPromise } from "../ratio.js";
import { coinsOf } from "./base.js";
import type { Kind, Mechanism } from "./base.js";
import { GRR } from "./grr.js";
import { HaarResponse, HadamardResponse } from "./hadamard.js";
import { BLH, LinearHashing, OLH, RandomProjection } from "./hashing.js";
import { Piecewise, StochasticRounding } from "./means.js";
import { PGR } from "./pgr.js";
import { Rappor } from "./rappor.js";
import { SHE } from "./she.js";
import { SubsetSelection } from "./subset.js";
import { OUE, SUE, THE } from "./unary.js";
import { SquareWave } from "./wave.js";

export type { Mechanism };

const KINDS: Record<string, Kind> = {
  GRR,
  OUE,
  SUE,
  THE,
  OLH,
  BLH,
  RandomProjection,
  LinearHashing,
  SubsetSelection,
  HadamardResponse,
  HaarResponse,
  SHE,
  PGR,
  Rappor,
  SquareWave,
  StochasticRounding,
  Piecewise,
};

export function readMechanism(document: Json | undefined, domain: Domain): Mechanism {
  const kind = byKind(document, KINDS, "a mechanism");
  const keys = document as JsonObject;
  const names = kind.keys.filter((name) => name !== "seed_bytes" || keys[name] === 4); // seeds of 8 go without saying
  const [epsilon, thresholds] = take(keys, keys["kind"] as string, "epsilon", "thresholds", ...names);
  const declared = decimal(epsilon);
  if (declared < 1e-6 || declared > 40) throw malformed("an epsilon from 0.000001 to 40");
  if (domain.universe !== undefined || domain.attributes !== undefined || domain.size < 2n) {
    throw malformed("a question about at least two values");
  }
  const coins = coinsOf(thresholds, kind.thresholds(keys));
  const coin = (name: string): bigint => coins.get(name) as bigint;
  const made = kind.make({ document: { ...keys, domain: domain.json }, domain, keys, coin });
  keepPromise(made.ratio, epsilon as string);
  return made;
}
