// What is shipped: small, without dependencies, with types, and with nothing in it that a page should not reach.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { IDBFactory } from "fake-indexeddb";

import { Collector, GRR_TASK } from "./collector.mjs";

const dist = (name) => new URL(`../dist/${name}`, import.meta.url);
const bundle = readFileSync(dist("veil.js"));

test("under 20 kB gzipped", () => {
  const size = gzipSync(bundle, { level: 9 }).length;
  assert.ok(size < 20_000, `${size} bytes`);
});

test("says what it is, in lines that a terminal can show", () => {
  const lines = bundle.toString().split("\n");
  assert.match(lines[0], /^\/\*! veil-client \d+\.\d+\.\d+, Apache-2\.0 \*\/$/);
  assert.ok(Math.max(...lines.map(({ length }) => length)) < 400);
});

test("no imports, and no randomness but the browser's", () => {
  const text = bundle.toString();
  assert.doesNotMatch(text, /\bimport\b|\brequire\(|Math\.random|\beval\(|new Function/);
  assert.equal(text.match(/getRandomValues/g).length, 1);
  assert.equal(
    Object.keys(JSON.parse(readFileSync(new URL("../package.json", import.meta.url))).dependencies ?? {}).length,
    0,
  );
});

test("its API is a client and its errors: no seam for entropy, clock or store", async () => {
  const api = await import(dist("veil.js"));
  assert.deepEqual(Object.keys(api).sort(), [
    "BudgetError",
    "Client",
    "CollectorError",
    "DomainError",
    "StorageError",
    "SurveyError",
    "VeilError",
  ]);
  assert.deepEqual(Object.keys(api.Client), ["open"]);
  const types = readFileSync(dist("client.d.ts"), "utf8");
  assert.doesNotMatch(types, /openClient|constructor|Environment\b.*fill/);
  assert.ok(existsSync(dist("index.d.ts")));
});

test("the bundle itself, in a browser's clothes: answers, and hides what it works with", async () => {
  const collector = new Collector();
  const task = await collector.publish(GRR_TASK);
  Object.assign(globalThis, { indexedDB: new IDBFactory(), fetch: collector.fetch });
  const { Client } = await import(dist("veil.js"));
  const client = await Client.open({ collector: collector.address, key: collector.key, task, budget: 1 });
  client.domain.labels.length = 0; // a copy: what the page does to it is its own affair
  assert.deepEqual(client.domain, GRR_TASK.domain);
  assert.deepEqual(await client.answer("yes"), { state: "delivered" });
  await assert.rejects(client.answer("no", {}, undefined, true), { name: "BudgetError", code: "budget" });
  assert.equal(collector.reports.size, 1);
  assert.deepEqual(Reflect.ownKeys(client), []);
  client.close();
});

test("its types are right for a page in strict TypeScript", () => {
  const consumer = fileURLToPath(new URL("consumer.ts", import.meta.url));
  const compiler = fileURLToPath(new URL("../node_modules/typescript/bin/tsc", import.meta.url));
  const options = ["--noEmit", "--strict", "--target", "es2022", "--module", "es2022", "--moduleResolution", "bundler"];
  const { status, stdout } = spawnSync(process.execPath, [compiler, ...options, consumer], { encoding: "utf8" });
  assert.equal(status, 0, stdout);
});
