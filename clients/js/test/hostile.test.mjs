// A collector that wants to fill a device, to stop its queue, or to be paid more than a person was asked before.

import assert from "node:assert/strict";
import { test } from "node:test";

import { readJson } from "../build/canonical.js";
import { openDatabase } from "../build/database.js";
import { StorageError } from "../build/errors.js";

import { IDBFactory, IDBObjectStore } from "fake-indexeddb";

import { GRR_TASK } from "./collector.mjs";
import { World } from "./world.mjs";

const refused = (code) => (error) => error.code === code;
const bytes = (text) => new TextEncoder().encode(text);
const DAY = 86_400_000;

// A fetch that answers requests of one method with a body without end, and counts its bytes.
function pouring(world, method, piece, status = 200) {
  const poured = { bytes: 0 };
  poured.fetch = async (address, options = {}) => {
    if ((options.method ?? "GET") !== method) return world.collector.fetch(address, options);
    const pull = (controller) => {
      poured.bytes += piece.length;
      controller.enqueue(piece);
    };
    return new Response(new ReadableStream({ pull }, { highWaterMark: 0 }), { status });
  };
  return poured;
}

test("JSON is limited in depth and in values, counted outside of strings", () => {
  const nested = (depth) => "[".repeat(depth) + "]".repeat(depth);
  assert.notEqual(readJson(bytes(nested(64))), null);
  for (const text of [nested(65), "[".repeat(20_000_000), `[${"[],".repeat(3_000_000)}0]`, `[${"0,".repeat(2 ** 21)}0]`]) {
    assert.equal(readJson(bytes(text)), null);
  }
  const held = ["[".repeat(100), '"[{,:'.repeat(100), "\\".repeat(99), `${"\\".repeat(99)}"[[`];
  const many = Array.from({ length: 50_000 }, () => held);
  assert.deepEqual(readJson(bytes(JSON.stringify(many))), many);
  assert.equal(readJson(bytes(`["\\\\",${nested(64)}]`)), null); // the string ends before the brackets
  for (const text of ["", "{", '{"a":1', "\ufeff{}", "NaN"]) assert.equal(readJson(bytes(text)), null);
  assert.equal(readJson(Uint8Array.of(0x22, 0xff, 0x22)), null);
});

for (const [size, most] of [[65_536, 2 ** 24 + 2 ** 18], [1, 2 ** 16 + 2]]) {
  const method = size === 1 ? "POST" : "GET"; // pieces of one byte take long, so only a short answer is made of them
  test(`an endless answer to a ${method} is no answer, in pieces of ${size}`, async () => {
    const world = new World();
    const task = await world.collector.publish(GRR_TASK);
    const poured = pouring(world, method, new Uint8Array(size).fill(0x20));
    if (method === "GET") await assert.rejects(world.open({ task }, { fetch: poured.fetch }), refused("offline"));
    else {
      const client = await world.open({ task }, { fetch: poured.fetch });
      assert.deepEqual(await client.answer("yes"), { state: "queued" });
    }
    assert.ok(0 < poured.bytes && poured.bytes <= most, `${poured.bytes} bytes`);
  });
}

test("a survey that was verified before is answered while the collector's answers have no end", async () => {
  const world = new World();
  const task = await world.collector.publish(GRR_TASK);
  await world.open({ task });
  const poured = pouring(world, "GET", new Uint8Array(1 << 20).fill(0x20));
  const client = await world.open({ task }, { fetch: poured.fetch });
  assert.deepEqual(await client.answer("yes"), { state: "delivered" });
});

test("an answer of 4xx without end refuses nothing: the report is sent again", async () => {
  const world = new World();
  const task = await world.collector.publish(GRR_TASK);
  const poured = pouring(world, "POST", new Uint8Array(1 << 16).fill(0x20), 422);
  const changes = { fetch: poured.fetch };
  const client = await world.open({ task }, { fetch: (...given) => changes.fetch(...given) });
  assert.deepEqual(await client.answer("yes"), { state: "queued" });
  changes.fetch = world.collector.fetch;
  await world.pass(DAY);
  assert.equal(await client.waiting(), 0);
});

for (const [name, error] of [
  ["an object that no text can be made of", { code: { toString: 0, valueOf: 0 }, message: { toString: 0 } }],
  ["lists in lists", { code: JSON.parse("[".repeat(50) + "]".repeat(50)), message: [[]] }],
  ["numbers", { code: 7, message: -1 }],
  ["nothing", null],
  ["a string", "no"],
]) {
  test(`a refusal whose reason is ${name} is a refusal, and holds up no other report`, async () => {
    const world = new World();
    const answers = [error];
    const fetch = async (address, options = {}) =>
      options.method === "POST" && answers.length
        ? new Response(JSON.stringify({ error: answers.shift() }), { status: 422 })
        : world.collector.fetch(address, options);
    const client = await world.open({ budget: 2 }, { fetch });
    const { state, reason } = await client.answer("yes");
    assert.deepEqual([state, reason], ["refused", { status: 422, code: "422", message: "" }]);
    assert.deepEqual(await client.answer("no", {}, undefined, true), { state: "delivered" });
  });
}

test("the words of a refusal are kept to a length", async () => {
  const world = new World();
  const error = { code: "c".repeat(30_000), message: "m".repeat(30_000) };
  const fetch = async (address, options = {}) =>
    options.method === "POST"
      ? new Response(JSON.stringify({ error }), { status: 422 })
      : world.collector.fetch(address, options);
  const { reason } = await (await world.open({}, { fetch })).answer("yes");
  assert.deepEqual([reason.code.length, reason.message.length], [100, 500]);
});

test("a Retry-After of a year, or of nonsense, holds a report for a day at most", async () => {
  for (const wished of ["31536000", "9".repeat(400), "Fri, 31 Dec 9999 23:59:59 GMT", "-1", "soon", "1e9"]) {
    const world = new World();
    const client = await world.open();
    world.collector.answers = [[429, { "Retry-After": wished }]];
    assert.deepEqual(await client.answer("yes"), { state: "queued" });
    await world.pass(DAY + 1000);
    assert.equal(await client.waiting(), 0, wished);
  }
});

test("5xx for ever is tried again for ever, at intervals that stay below eight minutes", async () => {
  const world = new World();
  const client = await world.open();
  world.collector.answers = Array(1_200).fill(503);
  await client.answer("yes");
  while (world.collector.answers.length) {
    const [{ at }] = world.timers;
    assert.ok(at - world.time <= 450_000, `${at - world.time}`);
    await world.pass(at - world.time);
  }
  await world.pass(450_000);
  assert.equal(new Set(world.collector.posts).size, 1);
  assert.equal(world.collector.reports.size, 1);
});

test("what stands beside a signed survey is not kept", async () => {
  const world = new World();
  const task = await world.collector.publishWave("really", GRR_TASK);
  const shown = world.collector.published(task);
  const about = { ...shown.about, filler: "x".repeat(100_000) };
  world.collector.replace(task, { ...shown, about, filler: "x".repeat(100_000) });
  await world.open({ task });
  const kept = await world.store.envelope(`${world.collector.address}/v1/surveys/${task}`);
  assert.deepEqual(kept, shown);
});

test("an answer that is paid for is queued where the database fails afterwards", async () => {
  const world = new World();
  const client = await world.open();
  world.collector.answers = [503];
  world.store.update = () => Promise.reject(new StorageError("full"));
  assert.deepEqual(await client.answer("yes"), { state: "queued" });
  assert.equal((await client.account()).left, "0");
  delete world.store.update;
  await client.deliver();
  assert.equal(await client.waiting(), 0);
  assert.equal(new Set(world.collector.posts).size, 1);
});

test("a database that is full grants nothing and sends nothing", async () => {
  const factory = new IDBFactory();
  const world = Object.assign(new World(), { store: await openDatabase(factory, "veil") });
  const client = await world.open();
  const { add, put } = IDBObjectStore.prototype;
  const full = () => {
    throw new DOMException("full", "QuotaExceededError");
  };
  for (const name of ["add", "put"]) {
    IDBObjectStore.prototype[name] = full;
    await assert.rejects(client.answer("yes"), refused("storage"));
    Object.assign(IDBObjectStore.prototype, { add, put });
    assert.deepEqual([world.collector.posts.length, (await client.account()).left], [0, "1"]);
  }
  assert.deepEqual(await client.answer("yes"), { state: "delivered" });
});

test("a database that another page blocks is an error, and no page waits for it", async () => {
  const factory = new IDBFactory();
  const old = await new Promise((resolve, reject) => {
    const request = factory.open("veil", 1); // an old client's, which does not let go of it
    request.onupgradeneeded = () => {
      for (const name of ["charges", "parcels", "surveys"]) request.result.createObjectStore(name);
    };
    request.onsuccess = () => resolve(request.result);
    request.onerror = reject;
  });
  await assert.rejects(openDatabase(factory, "veil"), refused("storage"));
  old.close(); // fake-indexeddb waits for that
});

// -- a larger eps, signed by the collector -----------------------------------------------------------------------------

const EIGHT = { ...GRR_TASK, wave: 2, ask: { ...GRR_TASK.ask, mechanism: {"epsilon": "8", "kind": "GRR", "thresholds": {"stay": "ffea05c2282d085a"}} } };
const TREE = { ...GRR_TASK, wave: 2, ask: { asks: Array(8).fill(GRR_TASK.ask), kind: "all-of" } }; // each declares 1

for (const [name, second] of [
  ["one question", EIGHT],
  ["a tree", TREE],
]) {
  test(`a later wave costs no more than the first, unless a page says so: ${name}`, async () => {
    const world = new World();
    const open = (budget) => world.open({ name: "really", budget });
    await world.collector.publishWave("really", GRR_TASK);
    await (await open({ lifetime: 20 })).answer("yes");
    await world.collector.publishWave("really", second);
    const client = await open({ lifetime: 20 });
    assert.match((await client.account()).cost, /^8|^7\.999/);
    const problem = await client.answer("yes").then(assert.fail, (error) => error);
    assert.equal(problem.code, "budget");
    assert.match(problem.message, /costs eps .* it cost 1 .*perSurvey/);
    assert.equal((await client.account()).left, "19");
    assert.equal(await client.waiting(), 0);
    await assert.rejects(open({ lifetime: 20, perSurvey: 8 }), refused("budget")); // it would lift the rule: a raise
    await client.raiseCaps({ perSurvey: 7.9 });
    await assert.rejects(client.answer("yes"), refused("budget"));
    await client.raiseCaps({ perSurvey: 8 });
    assert.deepEqual(await client.answer("yes"), { state: "delivered" });
    assert.deepEqual(await client.answer("yes"), { state: "delivered", earlier: true }); // nothing more is drawn
    await assert.rejects(client.answer("no", {}, undefined, true), refused("budget"));
    assert.equal(world.collector.reports.size, 2);
    const task = await world.collector.publish({ ...second, wave: 3 }); // asked for by its id, which names its eps
    assert.deepEqual(await (await world.open({ task, budget: { lifetime: 20 } })).answer("yes"), { state: "delivered" });
  });
}

test("a budget per survey is for all answers to it", async () => {
  const world = new World();
  const client = await world.open({ budget: { lifetime: 9, perSurvey: 1 } });
  await client.answer("yes");
  await assert.rejects(client.answer("no", {}, undefined, true), refused("budget"));
  for (const perSurvey of [0, -1, Infinity, "1", null]) {
    await assert.rejects(world.open({ budget: { lifetime: 9, perSurvey } }), refused("budget"));
  }
});
