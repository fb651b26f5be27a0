// Reproduces vectors/*.json byte for byte, from docs/wire-format.md alone: the seed of the browser client.
//
//     node clients/js/reproduce.mjs [folder of vectors]
//
// No dependencies, no floating point where it matters: words, thresholds and ratios are BigInts. It is not a client
// yet: it keeps no budget, and takes its entropy from the vectors.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { join } from "node:path";

const WORD = 1n << 64n;
const LANES = (1n << 64n) - 1n;
const MASK32 = 0xffffffffn;

const hex = (bytes) => Buffer.from(bytes).toString("hex");
const unhex = (text) => new Uint8Array(Buffer.from(text, "hex"));
const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest();
const littleEndian = (number, width) => Uint8Array.from({ length: width }, (_, i) => Number((number >> BigInt(8 * i)) & 255n));
const fromLittleEndian = (bytes) => bytes.reduceRight((number, byte) => (number << 8n) | BigInt(byte), 0n);
const fromBigEndian = (bytes) => bytes.reduce((number, byte) => (number << 8n) | BigInt(byte), 0n);
const bigEndian = (number, width) => littleEndian(number, width).reverse();

// -- Randomness: 64-bit words, and nothing but decided draws out of them ----------------------------------------------

class Words {
  constructor(bytes) {
    this.bytes = bytes;
    this.used = 0;
  }

  word() {
    const at = 8 * this.used;
    if (at + 8 > this.bytes.length) throw new Error("the given entropy is used up");
    this.used += 1;
    return fromLittleEndian(this.bytes.subarray(at, at + 8));
  }

  // True with probability threshold / 2^64.
  coin(threshold) {
    return this.word() < threshold;
  }

  // Uniform on 0 .. bound - 1. A bound of 1 takes a word as well.
  below(bound) {
    return this.belowEach([bound])[0];
  }

  // Several draws: first one word each, in order; then one more for each that was rejected, in order; and so on.
  belowEach(bounds) {
    const drawn = bounds.map(() => this.word());
    const limits = bounds.map((bound) => (WORD / bound) * bound);
    let rejected = bounds.map((_, i) => i).filter((i) => drawn[i] >= limits[i]);
    while (rejected.length) {
      for (const i of rejected) drawn[i] = this.word();
      rejected = rejected.filter((i) => drawn[i] >= limits[i]);
    }
    return drawn.map((word, i) => word % bounds[i]);
  }

  // `width` coins as packed bits, lowest first: 64 lanes a block, compared with the threshold bit by bit from the top.
  coinBits(threshold, width) {
    const blocks = Math.ceil(width / 64);
    const undecided = Array(blocks).fill(LANES);
    if (width % 64) undecided[blocks - 1] = (1n << BigInt(width % 64)) - 1n;
    const heads = threshold === WORD ? [...undecided] : Array(blocks).fill(0n);
    if (threshold !== WORD) {
      for (let position = 63n; position >= 0n; position--) {
        if ((threshold & ((2n << position) - 1n)) === 0n) break; // lanes that are still equal are not below
        for (let block = 0; block < blocks; block++) {
          if (undecided[block] === 0n) continue;
          const word = this.word();
          if ((threshold >> position) & 1n) {
            heads[block] |= undecided[block] & ~word & LANES;
            undecided[block] &= word;
          } else {
            undecided[block] &= ~word & LANES;
          }
        }
      }
    }
    return Uint8Array.from(heads.flatMap((lanes) => [...littleEndian(lanes, 8)]).slice(0, Math.ceil(width / 8)));
  }
}

// -- Canonical JSON (RFC 8785) and task ids: tasks hold strings and small integers only --------------------------------

function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const keys = Object.keys(value).sort(); // by UTF-16 code units, as RFC 8785 wants
    return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(",")}}`;
  }
  if (typeof value === "number" && !Number.isSafeInteger(value)) throw new Error("a task has no such number");
  return JSON.stringify(value);
}

const digest = (document) => sha256(canonical(document));

// -- Domains: a value to its code, a BigInt index or (above 64 bits, and for text) bytes -------------------------------

const ceil8 = (bits) => Math.ceil(bits / 8);

const domains = {
  categories: {
    size: (d) => BigInt(d.labels ? d.labels.length : d.size) + (d.missing === "category" ? 1n : 0n),
    encode(d, value) {
      if (value === null) return domains.categories.size(d) - 1n;
      const index = d.labels ? d.labels.indexOf(typeof value === "string" ? value.normalize("NFC") : value) : value;
      return BigInt(index);
    },
  },
  integers: {
    size: (d) => BigInt(d.hi) - BigInt(d.lo) + 1n,
    encode: (d, value) => BigInt(value) - BigInt(d.lo),
  },
  interval: {
    size: (d) => BigInt(d.cells),
    encode(d, value) {
      const lo = Number(d.lo);
      const cell = Math.floor(((value - lo) / (Number(d.hi) - lo)) * d.cells); // IEEE doubles, in this order
      return BigInt(Math.min(cell, d.cells - 1));
    },
  },
  bits: {
    size: (d) => 1n << BigInt(d.bits),
    encode(d, value) {
      const number = typeof value === "object" ? fromBigEndian(unhex(value.hex)) : BigInt(value);
      return d.bits > 64 ? bigEndian(number, ceil8(d.bits)) : number;
    },
  },
  text: {
    size: (d) => 1n << BigInt(8 * d.max_bytes),
    encode(d, value) {
      const code = new Uint8Array(d.max_bytes);
      code.set(new TextEncoder().encode(value.normalize("NFC")).subarray(0, d.max_bytes));
      return code;
    },
  },
  items: {
    encode(d, value) {
      const codes = new Set(value.map((item) => encode(d.universe, item)));
      return [...codes].sort((a, b) => (a < b ? -1 : 1));
    },
  },
  record: {
    encode: (d, value) => d.attributes.map(([name, part]) => encode(part, value[name])),
  },
};

const sizeOf = (domain) => domains[domain.kind].size(domain);

function encode(domain, value) {
  const code = domains[domain.kind].encode(domain, value);
  if (typeof code === "bigint" && (code < 0n || code >= sizeOf(domain))) throw new Error("not a value of the domain");
  return code;
}

// -- Views: from the held code to the one that a question asks about ---------------------------------------------------

const views = {
  identity: (view, code) => code,
  segment(view, code) {
    const bits = view.source.kind === "text" ? 8 * view.source.max_bytes : view.source.bits;
    const number = typeof code === "bigint" ? code : fromBigEndian(code);
    const width = view.stop - view.start;
    const shown = (number >> BigInt(bits - view.stop)) & ((1n << BigInt(width)) - 1n);
    return width > 64 ? bigEndian(shown, ceil8(width)) : shown;
  },
  ancestor(view, code) {
    const [size, branching] = [sizeOf(view.source), BigInt(view.branching)];
    let height = 0;
    for (let reach = 1n; reach < size; reach *= branching) height += 1;
    return code / branching ** BigInt(height - view.level);
  },
  project(view, codes) {
    const names = view.source.attributes.map(([name]) => name);
    return view.attributes.reduce((index, name) => {
      const at = names.indexOf(name);
      return index * sizeOf(view.source.attributes[at][1]) + codes[at];
    }, 0n);
  },
  "sample-item"(view, codes, source) {
    const drawn = Number(source.below(BigInt(Math.max(codes.length, view.length))));
    return drawn < codes.length ? codes[drawn] : sizeOf(view.source.universe) + BigInt(drawn - codes.length);
  },
};

// -- The local hash ----------------------------------------------------------------------------------------------------

function splitmix64(value) {
  let z = (value + 0x9e3779b97f4a7c15n) & LANES;
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & LANES;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & LANES;
  return z ^ (z >> 31n);
}

// 64 well-mixed bits of a code; longer codes pass through SHA-256, salted with the mechanism's digest.
function spread(code, salt) {
  return typeof code === "bigint" ? splitmix64(code) : fromLittleEndian(sha256(salt, code).subarray(0, 8));
}

function bucketOf(seed, z, buckets) {
  let h = (z ^ seed) & MASK32;
  h ^= h >> 16n;
  h = (h * 0x7feb352dn) & MASK32;
  h ^= (z >> 32n) ^ (seed >> 32n);
  h ^= h >> 15n;
  h = (h * 0x846ca68bn) & MASK32;
  return (h * buckets) >> 32n;
}

const intervalStart = (bucket, buckets) => ((bucket << 32n) + buckets - 1n) / buckets;

// -- Mechanisms: columns of a report, how to draw it, and the exact ratio that its thresholds keep ---------------------

// A column of `count` unsigned little-endian integers of `width` bytes; `bits` is set for packed bits.
const widthFor = (bound) => [1, 2, 4, 8].find((width) => bound <= 1n << BigInt(8 * width));
const integers = (name, bound, count = 1) => ({ name, width: widthFor(bound), count, bits: null });
const packedBits = (name, bits) => ({ name, width: 1, count: ceil8(bits), bits });

const coins = (m) => Object.fromEntries(Object.entries(m.thresholds).map(([name, text]) => [name, BigInt(`0x${text}`)]));
const setBit = (bytes, index, on) => {
  const [byte, bit] = [Number(index >> 3n), Number(index & 7n)];
  bytes[byte] = (bytes[byte] & ~(1 << bit)) | (Number(on) << bit);
};

// Randomized response over 0 .. size - 1: stay on a coin, else one of the others.
function stayOrMove(source, stay, held, size) {
  if (source.coin(stay)) return held;
  const other = source.below(size - 1n);
  return other >= held ? other + 1n : other;
}

// The order of the Hadamard matrix: the smallest power of two that is not below the number of values.
const hadamardOrder = (m) => 1n << BigInt((sizeOf(m.domain) - 1n).toString(2).length);
const parity = (number) => BigInt(number.toString(2).split("1").length - 1) & 1n;

const subsetAsBits = (m) => {
  const size = sizeOf(m.domain);
  return ceil8(Number(size)) <= m.subset_size * widthFor(size);
};

// Projective space over F_q: points are vectors of length t whose first non-zero coordinate is 1, numbered with those
// that begin with 1 first, in the order of their other coordinates read as digits; then 0, 1, ...; and so on.
const pointCount = (q, t) => (BigInt(q) ** BigInt(t) - 1n) / (BigInt(q) - 1n);
const digitsOf = (number, q, count) =>
  Array.from({ length: count }, (_, k) => (number / q ** BigInt(count - 1 - k)) % q);

function pointAt(number, q, t) {
  const size = q ** BigInt(t - 1);
  return number < size ? [1n, ...digitsOf(number, q, t - 1)] : [0n, ...pointAt(number - size, q, t - 1)];
}

function numberOf(vector, q) {
  const [first, ...rest] = vector;
  if (first === 0n) return q ** BigInt(rest.length) + numberOf(rest, q);
  let scale = 1n; // 1 / first = first^(q - 2)
  for (let [power, base] = [q - 2n, first]; power > 0n; power >>= 1n, base = (base * base) % q) {
    if (power & 1n) scale = (scale * base) % q;
  }
  return rest.reduce((number, coordinate) => number * q + ((coordinate * scale) % q), 0n);
}

// A value's point: four Feistel rounds on the square of side floor(sqrt(K)), the rest in place.
function pointOf(value, points) {
  let side = BigInt(Math.floor(Math.sqrt(Number(points))));
  while (side * side > points) side -= 1n;
  while ((side + 1n) * (side + 1n) <= points) side += 1n;
  if (value >= side * side) return value;
  let [left, right] = [value / side, value % side];
  for (let turn = 0n; turn < 4n; turn++) [left, right] = [right, (left + splitmix64(4n * right + turn)) % side];
  return left * side + right;
}

// One bit for every value: OUE, SUE and THE differ in their thresholds only.
const unary = {
  columns: (m) => [packedBits("bits", Number(sizeOf(m.domain)))],
  draw(m, code, source) {
    const bits = source.coinBits(coins(m).others, Number(sizeOf(m.domain)));
    setBit(bits, code, source.coin(coins(m).held));
    return { bits: [...bits].map(BigInt) };
  },
  // (p / q) ((1 - q) / (1 - p)): two values differ in two bits
  ratio: (m) => [coins(m).held * (WORD - coins(m).others), coins(m).others * (WORD - coins(m).held)],
};

// A seed and a bucket: OLH, BLH and RandomProjection differ in how many of each there are.
function localHashing(bucketsOf, seedsOf = () => WORD, expand = (seed) => seed) {
  return {
    columns: (m) => [integers("seed", seedsOf(m)), integers("bucket", bucketsOf(m))],
    draw(m, code, source) {
      const seed = source.below(seedsOf(m));
      const own = bucketOf(expand(seed), spread(code, digest(m)), bucketsOf(m));
      return { seed: [seed], bucket: [stayOrMove(source, coins(m).stay, own, bucketsOf(m))] };
    },
    ratio: (m) => [coins(m).stay * (bucketsOf(m) - 1n), WORD - coins(m).stay],
  };
}

const mechanisms = {
  GRR: {
    columns: (m) => [integers("value", sizeOf(m.domain))],
    draw: (m, code, source) => ({ value: [stayOrMove(source, coins(m).stay, code, sizeOf(m.domain))] }),
    // p / q with p = T / 2^64 and q = (1 - p) / (d - 1)
    ratio: (m) => [coins(m).stay * (sizeOf(m.domain) - 1n), WORD - coins(m).stay],
  },
  OUE: unary,
  SUE: unary,
  THE: unary,
  OLH: localHashing((m) => BigInt(m.hash_range)),
  BLH: localHashing(() => 2n),
  RandomProjection: localHashing(() => 2n, (m) => BigInt(m.rows), (row) => splitmix64(splitmix64(row))),
  SubsetSelection: {
    columns(m) {
      const size = sizeOf(m.domain);
      return [subsetAsBits(m) ? packedBits("bits", Number(size)) : integers("subset", size, m.subset_size)];
    },
    // Floyd's algorithm over the values other than the held one.
    draw(m, code, source) {
      const size = sizeOf(m.domain);
      const inside = source.coin(coins(m).inside);
      const picks = BigInt(m.subset_size - Number(inside));
      const skip = (index) => (index >= code ? index + 1n : index);
      const bounds = Array.from({ length: Number(picks) }, (_, j) => size - picks + BigInt(j));
      const chosen = new Set();
      source.belowEach(bounds).forEach((drawn, j) => {
        const pick = skip(drawn);
        chosen.add(chosen.has(pick) ? skip(size - 1n - picks + BigInt(j)) : pick);
      });
      if (inside) chosen.add(code);
      const subset = [...chosen].sort((a, b) => (a < b ? -1 : 1));
      if (!subsetAsBits(m)) return { subset };
      const bits = new Uint8Array(ceil8(Number(size)));
      for (const value of subset) setBit(bits, value, true);
      return { bits: [...bits].map(BigInt) };
    },
    // p (d - w) / ((1 - p) w)
    ratio(m) {
      const [d, w] = [sizeOf(m.domain), BigInt(m.subset_size)];
      return [coins(m).inside * (d - w), (WORD - coins(m).inside) * w];
    },
  },
  PGR: {
    columns: (m) => [integers("point", pointCount(m.prime, m.dimension))],
    // x solves <x, own> = 0 or 1 for the coordinate of own's leading one; the draw gives all others
    draw(m, code, source) {
      const [q, t] = [BigInt(m.prime), m.dimension];
      const own = pointAt(pointOf(code, pointCount(q, t)), q, t);
      const orthogonal = source.coin(coins(m).orthogonal);
      const drawn = source.below(orthogonal ? pointCount(q, t - 1) : q ** BigInt(t - 1));
      const others = orthogonal ? pointAt(drawn, q, t - 1) : digitsOf(drawn, q, t - 1);
      const pivot = own.indexOf(1n);
      const x = [...others.slice(0, pivot), 0n, ...others.slice(pivot)];
      const product = x.reduce((sum, coordinate, k) => sum + coordinate * own[k], 0n);
      x[pivot] = (((orthogonal ? 0n : 1n) - product) % q + q) % q;
      return { point: [numberOf(x, q)] };
    },
    // s (K - c_set) / ((1 - s) c_set)
    ratio(m) {
      const [s, inside] = [coins(m).orthogonal, pointCount(m.prime, m.dimension - 1)];
      return [s * BigInt(m.prime) ** BigInt(m.dimension - 1), (WORD - s) * inside];
    },
  },
  HadamardResponse: {
    columns: (m) => [integers("signed_row", 2n * hadamardOrder(m))],
    draw(m, code, source) {
      const row = source.below(hadamardOrder(m));
      const bit = parity(row & code) ^ BigInt(!source.coin(coins(m).keep));
      return { signed_row: [2n * row + bit] };
    },
    ratio: (m) => [coins(m).keep, WORD - coins(m).keep],
  },
  SHE: {
    columns: (m) => [integers("histogram", BigInt(m.grid + 2 * m.reach + 1), Number(sizeOf(m.domain)))],
    draw(m, code, source) {
      const { zero, further } = coins(m);
      const steps = Array(Number(sizeOf(m.domain))).fill(0);
      let running = steps.map(() => source.coin(zero)).flatMap((atZero, i) => (atZero ? [] : [i]));
      const signs = new Map(running.map((i) => [i, source.coin(WORD / 2n) ? -1 : 1]));
      for (let step = 0; step < m.grid + m.reach; step++) {
        for (const i of running) steps[i] += signs.get(i);
        running = running.filter(() => source.coin(further));
      }
      steps[Number(code)] += m.grid;
      return { histogram: steps.map((x) => BigInt(Math.min(Math.max(x, -m.reach), m.grid + m.reach) + m.reach)) };
    },
    // the worst of one step further, and of the step between 0 and 1 either way; two coordinates differ by `grid` steps
    ratio(m) {
      const { zero, further } = coins(m);
      const [at, next] = [2n * zero * WORD, (WORD - zero) * (WORD - further)];
      const [above, under] = [[at, next], [next, at]].reduce(larger, [WORD, further]);
      return [above ** BigInt(2 * m.grid), under ** BigInt(2 * m.grid)];
    },
  },
  Rappor: {
    columns: (m) => [integers("cohort", BigInt(m.cohorts)), packedBits("bits", m.bits)],
    draw(m, code, source) {
      const { flip, instant_zero, instant_one } = coins(m);
      const cohort = source.below(BigInt(m.cohorts));
      const flips = source.coinBits(flip, m.bits);
      const bloom = new Uint8Array(ceil8(m.bits));
      for (let j = 0n; j < BigInt(m.hashes); j++) {
        const seed = splitmix64(splitmix64(cohort) ^ j);
        setBit(bloom, bucketOf(seed, spread(code, digest(m)), BigInt(m.bits)), true);
      }
      let bits = bloom.map((byte, i) => byte ^ flips[i]); // permanent
      if (m.instant !== null) {
        const [zero, one] = [source.coinBits(instant_zero, m.bits), source.coinBits(instant_one, m.bits)];
        bits = bits.map((byte, i) => (byte & one[i]) | (~byte & zero[i]));
      }
      return { cohort: [cohort], bits: [...bits].map(BigInt) };
    },
    // two values differ in at most two bits a hash
    ratio: (m) => [(WORD - coins(m).flip) ** BigInt(2 * m.hashes), coins(m).flip ** BigInt(2 * m.hashes)],
  },
};

// -- The tree of a survey ----------------------------------------------------------------------------------------------

function columnsOf(ask) {
  if (ask.kind === "question") return mechanisms[ask.mechanism.kind].columns(ask.mechanism);
  if (ask.kind === "all-of") {
    return ask.asks.flatMap((part, i) => columnsOf(part).map((column) => ({ ...column, name: `${i}.${column.name}` })));
  }
  // one-of: the choice, then the branches' columns laid over each other by name
  const merged = new Map([["choice", integers("choice", BigInt(ask.branches.length))]]);
  for (const column of ask.branches.flatMap(([, branch]) => columnsOf(branch))) {
    const other = merged.get(column.name);
    const larger = (key) => Math.max(other[key], column[key]);
    const bits = other && column.bits !== null && other.bits !== null ? larger("bits") : null;
    merged.set(column.name, other ? { ...column, width: larger("width"), count: larger("count"), bits } : column);
  }
  return [...merged.values()];
}

// Integers by column name; a column that is not there is all zeros.
function drawAsk(ask, code, source) {
  if (ask.kind === "question") {
    return mechanisms[ask.mechanism.kind].draw(ask.mechanism, views[ask.view.kind](ask.view, code, source), source);
  }
  if (ask.kind === "all-of") {
    const drawn = ask.asks.map((part) => Object.entries(drawAsk(part, code, source)));
    return Object.fromEntries(drawn.flatMap((entries, i) => entries.map(([name, column]) => [`${i}.${name}`, column])));
  }
  let rest = source.below(ask.branches.reduce((total, [share]) => total + BigInt(share), 0n));
  let choice = 0;
  while (rest >= BigInt(ask.branches[choice][0])) rest -= BigInt(ask.branches[choice++][0]);
  return { choice: [BigInt(choice)], ...drawAsk(ask.branches[choice][1], code, source) };
}

// The domain that a view shows, and so its mechanism's.
const categoriesOf = (size) => ({ kind: "categories", missing: "refuse", size: Number(size) });
const shownBy = {
  identity: (view) => view.source,
  segment: (view) => ({ kind: "bits", bits: view.stop - view.start }),
  ancestor(view) {
    const last = views.ancestor(view, sizeOf(view.source) - 1n);
    return last === sizeOf(view.source) - 1n ? view.source : categoriesOf(last + 1n);
  },
  project(view) {
    const parts = view.attributes.map((name) => view.source.attributes.find(([other]) => other === name)[1]);
    return parts.length === 1 ? parts[0] : categoriesOf(parts.reduce((size, part) => size * sizeOf(part), 1n));
  },
  "sample-item": (view) => categoriesOf(sizeOf(view.source.universe) + BigInt(view.length)),
};

// A task says the held domain once: give it to every view, and what the view shows to its mechanism.
function askOf(task, ask = task.ask) {
  if (ask.kind === "all-of") return { ...ask, asks: ask.asks.map((part) => askOf(task, part)) };
  if (ask.kind === "one-of") {
    return { ...ask, branches: ask.branches.map(([share, branch]) => [share, askOf(task, branch)]) };
  }
  const view = { ...ask.view, source: task.domain };
  return { ...ask, view, mechanism: { ...ask.mechanism, domain: shownBy[view.kind](view) } };
}

const questionsOf = (ask) =>
  ask.kind === "question" ? [ask] : (ask.asks ?? ask.branches.map(([, branch]) => branch)).flatMap(questionsOf);

// The normative report. Draw order: path through the tree, view, mechanism, report id.
function report(task, value, source, beside = {}) {
  const ask = askOf(task);
  const drawn = drawAsk(ask, encode(task.domain, value), source);
  const payload = columnsOf(ask).flatMap(({ name, width, count }) => {
    const column = drawn[name] ?? [];
    return Array.from({ length: count }, (_, i) => [...littleEndian(column[i] ?? 0n, width)]).flat();
  });
  const reportId = [source.word(), source.word()].flatMap((word) => [...littleEndian(word, 8)]);
  const publicColumns = task.public.flatMap(([name]) => [...littleEndian(BigInt.asUintN(64, BigInt(beside[name])), 8)]);
  return Uint8Array.from([1, ...digest(task), ...reportId, ...payload, ...publicColumns]);
}

// -- The promise: exact ratios against e^eps, without an exponential in floating point ---------------------------------

const DIGITS = 10n ** 80n;

// floor(10^80 e^eps), or a little less: every term of the series is rounded down.
function expBelow(epsilon) {
  const [, whole, part = ""] = /^([0-9]+)(?:\.([0-9]+))?$/.exec(epsilon) ?? [null, "0"];
  const [numerator, denominator] = [BigInt(whole + part), 10n ** BigInt(part.length)];
  if (numerator === 0n) throw new Error("epsilon is a decimal above 0");
  let [sum, term] = [0n, DIGITS];
  for (let k = 1n; term > 0n; k++) {
    sum += term;
    term = (term * numerator) / (denominator * k);
  }
  return sum;
}

const larger = (a, b) => (a[0] * b[1] >= b[0] * a[1] ? a : b);

// A mechanism's ratio, whichever way round is worse; refuses one above its declared epsilon.
function promisedRatio(mechanism) {
  const [above, under] = mechanisms[mechanism.kind].ratio(mechanism);
  if (above <= 0n || under <= 0n) throw new Error("this task promises nothing");
  const ratio = larger([above, under], [under, above]);
  if (ratio[0] * DIGITS > expBelow(mechanism.epsilon) * ratio[1]) {
    throw new Error(`this task's ratio is above its declared epsilon of ${mechanism.epsilon}`);
  }
  return ratio;
}

function ratioOf(ask) {
  if (ask.kind === "one-of") return ask.branches.map(([, branch]) => ratioOf(branch)).reduce(larger);
  if (ask.kind === "all-of") return ask.asks.map(ratioOf).reduce((a, b) => [a[0] * b[0], a[1] * b[1]]);
  const [above, under] = promisedRatio(ask.mechanism);
  if (ask.view.kind !== "sample-item" || ask.mechanism.kind !== "GRR") return [above, under];
  const length = BigInt(ask.view.length); // one item of several: 1 + (r - 1) / length
  return [under * length + above - under, under * length];
}

// -- The vectors -------------------------------------------------------------------------------------------------------

const here = fileURLToPath(new URL(".", import.meta.url));
const folder = process.argv[2] ?? join(here, "..", "..", "vectors");
const read = (name) => JSON.parse(readFileSync(join(folder, `${name}.json`), "ascii"));
let [passed, failed] = [0, 0];

function check(name, run) {
  let problem = null;
  try {
    run((found, wanted) => {
      if (String(found) !== String(wanted)) throw new Error(`expected ${wanted}, found ${found}`);
    });
  } catch (error) {
    problem = error.message;
  }
  if (problem === null) {
    passed += 1;
  } else {
    failed += 1;
    console.log(`FAILED ${name}: ${problem}`);
  }
}

const codeText = (code) => (typeof code === "bigint" ? String(code) : hex(code));
const bitsOf = (vector) => encode({ kind: "bits", bits: vector.bits }, vector.value);

// For every kind of primitive: what to compute, and the key of what it must be.
const primitives = {
  coin: [(v) => new Words(unhex(v.entropy)).coin(BigInt(`0x${v.threshold}`)), "heads"],
  below: [(v, source) => source.below(BigInt(v.bound)), "drawn"],
  below_each: [(v, source) => source.belowEach(v.bounds.map(BigInt)), "drawn"],
  coin_bits: [(v, source) => hex(source.coinBits(BigInt(`0x${v.threshold}`), v.width)), "bits"],
  splitmix64: [(v) => splitmix64(BigInt(v.value)).toString(16).padStart(16, "0"), "spread"],
  salted: [(v) => spread(unhex(v.code), unhex(v.salt)).toString(16).padStart(16, "0"), "spread"],
  bucket: [(v) => bucketOf(BigInt(`0x${v.seed}`), splitmix64(BigInt(v.value)), BigInt(v.buckets)), "bucket"],
  interval_start: [(v) => intervalStart(BigInt(v.bucket), BigInt(v.buckets)), "start"],
  grid: [(v) => encode({ kind: "interval", ...v }, v.value), "index"],
  text: [(v) => hex(encode({ kind: "text", max_bytes: v.max_bytes }, v.value)), "code"],
  bits: [(v) => codeText(bitsOf(v)), "code"],
  segment: [(v) => codeText(views.segment({ source: { kind: "bits", bits: v.bits }, ...v }, bitsOf(v))), "code"],
  canonical: [(v) => canonical(v.document) + sha256(canonical(v.document)).toString("hex"), null],
};

for (const [kind, vectors] of Object.entries(read("primitives"))) {
  vectors.forEach((vector, i) =>
    check(`${kind} ${i}`, (equal) => {
      const [compute, key] = primitives[kind];
      const source = new Words(unhex(vector.entropy ?? ""));
      equal(compute(vector, source), key === null ? vector.text + vector.sha256 : vector[key]);
      if (vector.words !== undefined) equal(source.used, vector.words);
    }),
  );
}

for (const name of ["grr", "oue", "olh", "subset-selection", "pgr", "rappor", "hadamard-response", "she", "one-of"]) {
  for (const survey of read(name).surveys) {
    check(`${survey.name}: task id`, (equal) => equal(hex(digest(survey.task)), survey.task_id));
    check(`${survey.name}: columns`, (equal) => {
      const beside = survey.task.public.map(([column]) => ({ ...integers(`public.${column}`, WORD) }));
      equal(JSON.stringify([...columnsOf(askOf(survey.task)), ...beside]), JSON.stringify(survey.columns));
    });
    check(`${survey.name}: ratio`, (equal) => {
      const [found, wanted] = [ratioOf(askOf(survey.task)), survey.ratio.map(BigInt)];
      equal(found[0] * wanted[1], wanted[0] * found[1]);
    });
    for (const vector of survey.cases) {
      check(vector.name, (equal) => {
        const source = new Words(unhex(vector.entropy));
        equal(hex(report(survey.task, vector.value, source, vector.public)), vector.report);
        equal(source.used, vector.words);
      });
    }
  }
}

for (const vector of read("bad_tasks").cases.filter(({ ratio }) => ratio !== null)) {
  check(`bad task: ${vector.name}`, (equal) => {
    let verdict = "within";
    try {
      ratioOf(askOf(JSON.parse(vector.text)));
    } catch (error) {
      verdict = error.message.includes("above its declared epsilon") ? "above" : error.message;
    }
    equal(verdict, vector.ratio);
  });
}

console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed || !passed ? 1 : 0;
