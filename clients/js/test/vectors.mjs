// Reproduces vectors/*.json byte for byte through the shipped modules (`npm run compile` first).
//
//     node clients/js/test/vectors.mjs [folder of vectors]
//
// It says how many checks passed and failed, and fails if any did. Reports, batches and tallies that must not decode
// (bad_reports, bad_batches, bad_tallies) are the collector's to refuse: a device decodes nothing.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

import { encodeText, fromBase64url, hex, littleEndian } from "../build/bytes.js";
import { canonical, digest, parse } from "../build/canonical.js";
import { openClient } from "../build/client.js";
import { readDomain } from "../build/domains.js";
import { bucketOf, splitmix64, spreadBytes } from "../build/hash.js";
import { lastingReport } from "../build/lasting.js";
import { MemoryStore } from "../build/memory.js";
import { termsOf } from "../build/promise.js";
import { verify } from "../build/publication.js";
import { statements } from "../build/statements.js";
import { Survey } from "../build/survey.js";
import { readView } from "../build/views.js";
import { Words } from "../build/words.js";

const GOOD = [
  "grr",
  "oue",
  "sue",
  "the",
  "olh",
  "olh-short-seeds",
  "blh",
  "random-projection",
  "linear-hashing",
  "prefixes",
  "subset-selection",
  "hadamard-response",
  "haar-response",
  "she",
  "pgr",
  "rappor",
  "square-wave",
  "stochastic-rounding",
  "piecewise",
  "one-of",
  "set-views",
  "each-of",
  "calm",
  "bits",
  "tables",
];

// Safe, though not what veil itself would compute from epsilon: a device need not refuse it, and cannot tell.
const SAFE = new Set(["a larger epsilon than the thresholds'"]);

// What is wrong with these is the text itself: read and written again, they would be good.
const TEXTUAL = new Set(["a repeated key", "a float", "an integer with an exponent"]);

// The code of the error that a document is refused with, "within" if it is not.
async function verdictOn(read) {
  try {
    await Survey.read(read());
    return "within";
  } catch (error) {
    return { "survey-ratio": "above", "survey-form": "refused" }[error.code] ?? error.message;
  }
}

export const unhex = (text) => new Uint8Array(Buffer.from(text, "hex"));

// The words of a vector, one after another, and not one more.
export function wordsOf(entropy) {
  let at = 0;
  return new Words((buffer) => {
    if (at + buffer.length > entropy.length) throw new Error("the given entropy is used up");
    buffer.set(entropy.subarray(at, (at += buffer.length)));
  }, 1);
}

const codeText = (code) => (typeof code === "bigint" ? String(code) : hex(code));
const hex64 = (number) => hex(littleEndian(number, 8).reverse());
// Bytes stand in a vector as {"hex": ...}, times as {"time": ...}.
const held = (value) => (value?.hex ? unhex(value.hex) : value?.time ? new Date(value.time) : value);
const bits = (vector) => readDomain({ kind: "bits", bits: vector.bits });
const bitsCode = (vector) => {
  const value = held(vector.value);
  return bits(vector).encode(typeof value === "string" ? BigInt(value) : value);
};
const interval = ({ lo, hi, cells }) => readDomain({ kind: "interval", lo, hi, cells });
const intervalStart = (bucket, buckets) => ((bucket << 32n) + buckets - 1n) / buckets;

// For every kind of primitive: what to compute, and the key of what it must be.
const primitives = {
  coin: [(v, words) => words.coin(BigInt(`0x${v.threshold}`)), "heads"],
  below: [(v, words) => words.below(BigInt(v.bound)), "drawn"],
  below_each: [(v, words) => words.belowEach(v.bounds.map(BigInt)), "drawn"],
  coin_bits: [(v, words) => hex(words.coinBits(BigInt(`0x${v.threshold}`), v.width)), "bits"],
  splitmix64: [(v) => hex64(splitmix64(BigInt(v.value))), "spread"],
  salted: [async (v) => hex64(await spreadBytes(unhex(v.code), unhex(v.salt))), "spread"],
  bucket: [(v) => bucketOf(BigInt(`0x${v.seed}`), splitmix64(BigInt(v.value)), BigInt(v.buckets)), "bucket"],
  interval_start: [(v) => intervalStart(BigInt(v.bucket), BigInt(v.buckets)), "start"],
  grid: [(v) => interval(v).encode(v.value), "index"],
  text: [(v) => hex(readDomain({ kind: "text", max_bytes: v.max_bytes }).encode(v.value)), "code"],
  bits: [(v) => codeText(bitsCode(v)), "code"],
  segment: [
    (v) => codeText(readView({ kind: "segment", start: v.start, stop: v.stop }, bits(v)).apply(bitsCode(v))),
    "code",
  ],
  canonical: [async (v) => canonical(v.document) + (await digest(v.document)), null],
};

const integersOf = (numbers) => Object.fromEntries(Object.entries(numbers ?? {}).map(([name, n]) => [name, BigInt(n)]));

// Runs every check; `failed` receives the name and the problem of each that fails. Returns how many passed.
export async function reproduce(folder, failed) {
  const read = (name) => JSON.parse(readFileSync(join(folder, `${name}.json`), "ascii"));
  let passed = 0;

  async function check(name, run) {
    try {
      await run((found, wanted) => {
        if (String(found) !== String(wanted)) throw new Error(`expected ${wanted}, found ${found}`);
      });
      passed += 1;
    } catch (error) {
      failed(name, error.message);
    }
  }

  for (const [kind, vectors] of Object.entries(read("primitives"))) {
    for (const [i, vector] of vectors.entries()) {
      await check(`${kind} ${i}`, async (equal) => {
        const [compute, key] = primitives[kind];
        const words = wordsOf(unhex(vector.entropy ?? ""));
        equal(await compute(vector, words), key === null ? vector.text + vector.sha256 : vector[key]);
        if (vector.words !== undefined) equal(words.used, vector.words);
      });
    }
  }

  for (const vector of GOOD.flatMap((name) => read(name).surveys)) {
    let survey;
    await check(`${vector.name}: task id`, async (equal) => {
      survey = await Survey.read(parse(encodeText(canonical(vector.task))));
      equal(survey.task, vector.task_id);
    });
    if (survey === undefined) continue; // refused: the check above has said so
    await check(`${vector.name}: columns`, (equal) =>
      equal(JSON.stringify(survey.columns), JSON.stringify(vector.columns)),
    );
    for (const [name, text] of [["ratio", vector.ratio], ["delta", vector.delta ?? ["0", "1"]]]) {
      await check(`${vector.name}: ${name}`, (equal) => {
        const [found, wanted] = [survey.ask[name], text.map(BigInt)];
        equal(found[0] * wanted[1], wanted[0] * found[1]);
      });
    }
    for (const each of vector.cases) {
      await check(each.name, async (equal) => {
        const words = wordsOf(unhex(each.entropy));
        const code = survey.domain.encode(held(each.value));
        const report = await survey.report(code, survey.readPublic(integersOf(each.public)), words);
        equal(hex(report), each.report);
        equal(words.used, each.words);
        equal(report.length, 49 + survey.columns.reduce((size, { width, count }) => size + width * count, 0));
      });
    }
  }

  for (const person of read("lasting").people) {
    const survey = await Survey.read(parse(encodeText(canonical(person.task))));
    const kept = new Map();
    const known = { kept: (mark) => kept.get(mark) };
    const beside = survey.readPublic(integersOf(person.public));
    for (const { name, value, occasion, ...step } of person.steps) {
      await check(name, async (equal) => {
        const words = wordsOf(unhex(step.entropy));
        const own = JSON.stringify(value);
        const marks = { person: "person", value: own, occasion: `${own} ${occasion}` };
        const code = survey.domain.encode(held(value));
        const { report, fresh } = await lastingReport(survey, code, beside, marks, known, words);
        for (const [mark, bytes] of fresh) kept.set(mark, bytes);
        equal(hex(report), step.report);
        equal(words.used, step.words);
      });
    }
    const values = new Set(person.steps.map(({ value }) => JSON.stringify(value)));
    const occasions = new Set(person.steps.map(({ value, occasion }) => `${JSON.stringify(value)} ${occasion}`));
    await check(`${person.name}: kept`, (equal) => equal(kept.size, 1 + values.size + occasions.size));
    await check(`${person.name}: paid`, (equal) => equal(values.size, person.paid));
  }

  const { keys, steps } = read("published");
  const store = new MemoryStore(); // one device: what it saw in earlier steps decides
  for (const { name, now, asked, published, outcome } of steps) {
    await check(`published: ${name}`, async (equal) => {
      const wanted = /^[0-9a-f]{64}$/.test(asked) ? { task: asked } : { name: asked };
      const environment = {
        now: () => Date.parse(now),
        fetch: async () => new Response(JSON.stringify(published)),
        open: async () => store,
        alone: (_, run) => run(),
        online: () => () => undefined,
      };
      const options = { collector: "https://collector.example", key: keys, budget: 1, ...wanted };
      const found = await openClient(options, environment).then(
        () => "open",
        ({ code }) => ({ "survey-outdated": "outdated", "survey-rollback": "rollback" })[code] ?? "refused",
      );
      equal(found, outcome);
    });
  }

  const told = read("statements");
  for (const { name, published, statements: wanted } of told.cases) {
    await check(`statements: ${name}`, async (equal) => {
      const { document } = published;
      const task = await digest(parse(fromBase64url(document)).survey);
      const terms = termsOf(await verify(published, [told.key], { task }), told.collector);
      const found = statements(terms);
      equal(JSON.stringify(found), JSON.stringify(wanted));
    });
  }

  for (const vector of read("bad_tasks").cases) {
    const wanted = (verdict) =>
      vector.ratio ?? (SAFE.has(vector.name) ? "within" : verdict === "above" ? "above" : "refused");
    await check(`bad task: ${vector.name}`, async (equal) => {
      const verdict = await verdictOn(() => parse(encodeText(vector.text)));
      equal(verdict, wanted(verdict));
    });
    let document;
    try {
      document = JSON.parse(vector.text);
    } catch {
      continue; // no JSON at all
    }
    if (TEXTUAL.has(vector.name)) continue;
    await check(`bad task, in canonical form: ${vector.name}`, async (equal) => {
      const verdict = await verdictOn(() => parse(encodeText(canonical(document))));
      equal(verdict, wanted(verdict));
    });
  }
  return passed;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  let failures = 0;
  const folder = process.argv[2] ?? fileURLToPath(new URL("../../../vectors", import.meta.url));
  const passed = await reproduce(folder, (name, problem) => {
    failures += 1;
    console.log(`FAILED ${name}: ${problem}`);
  });
  console.log(`${passed} passed, ${failures} failed`);
  process.exitCode = failures || !passed ? 1 : 0;
}
