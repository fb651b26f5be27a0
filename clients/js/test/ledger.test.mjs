// What the ledger keeps: caps that only a step of its own raises, and nothing of an answer that was delivered.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { IDBFactory } from "fake-indexeddb";

import { openDatabase } from "../build/database.js";
import { MemoryStore } from "../build/memory.js";
import { forgetting } from "../build/ledger.js";
import { World } from "./world.mjs";

const refused = (code) => (error) => error.code === code;
const change = (client, value) => client.answer(value, {}, undefined, true);

for (const [name, makeStore] of [
  ["in memory", () => async () => new MemoryStore()],
  ["in IndexedDB", () => ((factory) => () => openDatabase(factory, "veil"))(new IDBFactory())],
]) {
  const inIndexedDB = name === "in IndexedDB";

  // A world whose pages open the same database anew.
  async function worldWith() {
    const open = makeStore();
    const world = Object.assign(new World(), { store: await open() });
    const page = (budget, more = {}) => world.open({ budget, ...more }, inIndexedDB ? { open } : {});
    return { world, page };
  }

  test(`${name}: the same ledger is not opened with more`, async () => {
    const { world, page } = await worldWith();
    const first = await page(1);
    await first.answer("yes");
    for (const budget of [30, { lifetime: 1, perSurvey: 1 }, { lifetime: 1, delta: 0.1 }]) {
      const problem = await page(budget).then(assert.fail, (error) => error);
      assert.equal(problem.code, "budget");
      assert.match(problem.message, /at most.*raiseCaps/);
    }
    assert.equal((await world.store.charges(true)).length, 2); // the caps, and a charge
    assert.equal((await (await page({})).account()).left, "0");
  });

  test(`${name}: a smaller cap is kept, also by a page that was open before`, async () => {
    const { page } = await worldWith();
    const first = await page({ lifetime: 3, perDay: 2 });
    await page({ lifetime: 0.5, perDay: 2 });
    assert.equal((await first.account()).left, "0.5");
    await assert.rejects(first.answer("yes"), refused("budget"));
    await assert.rejects(page(3), refused("budget"));
    await page({ perDay: 0.25 });
    const caps = await first.caps();
    assert.deepEqual(caps.map(({ change, lifetime, perDay }) => [change, lifetime, perDay]), [
      ["created", "3", "2"],
      ["lowered", "0.5", "2"],
      ["lowered", "0.5", "0.25"],
    ]);
  });

  test(`${name}: a raise is a step of its own, recorded with its day, which moves no other day`, async () => {
    const { world, page } = await worldWith();
    const client = await page(1);
    const now = world.time;
    for (const budget of [{}, 1, 0.5, { perDay: 1 }, { lifetime: 2, delta: 0 }, { lifetime: Infinity }, { delta: 1 }]) {
      await assert.rejects(client.raiseCaps(budget), refused("budget"));
    }
    world.time = Date.UTC(9999, 11, 31, 12);
    await client.raiseCaps({ lifetime: 2, perSurvey: 2 });
    world.time = now;
    assert.deepEqual((await client.caps()).at(-1), {
      change: "raised",
      day: "9999-12-31",
      lifetime: "2",
      perDay: null,
      perSurvey: "2",
      delta: "0",
    });
    await client.answer("yes");
    assert.deepEqual((await world.store.charges()).map(({ day }) => day), ["2026-01-31"]);
    await change(await page(2), "no");
    assert.equal((await client.account()).left, "0");
  });

  test(`${name}: a new ledger needs a lifetime`, async () => {
    const { world, page } = await worldWith();
    await assert.rejects(page({ perDay: 1 }), refused("budget"));
    assert.deepEqual(await world.store.charges(true), []);
  });

  // All that the device keeps, with the same entropy for everybody.
  async function kept(value, { rival = false } = {}) {
    const { world } = await worldWith();
    if (rival) world.store.forget = (_, id) => world.store.remove(id); // the ledger as it was before
    const fill = (buffer) => void new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength).fill(7);
    const client = await world.open({}, { fill });
    world.collector.answers = [503];
    const queued = await client.answer(value);
    const dump = async () => JSON.stringify([await world.store.charges(true), await world.store.parcels()], (_, part) =>
      part instanceof Uint8Array ? [...part] : part);
    const before = await dump();
    await world.pass(10_000);
    assert.equal(await client.waiting(), 0);
    assert.equal(world.collector.reports.size, 1);
    return { queued, before, after: await dump() };
  }

  test(`${name}: after delivery the devices of two answers keep the same`, async () => {
    const [yes, no] = [await kept("yes"), await kept("no")];
    assert.notEqual(yes.before, no.before);
    assert.equal(yes.after, no.after);
    assert.deepEqual(JSON.parse(yes.after)[0].map(({ mark, kept }) => [mark.length < 3, kept]), [[false, []], [true, []]]);
    const [old, other] = [await kept("yes", { rival: true }), await kept("no", { rival: true })];
    assert.notEqual(old.after, other.after);
  });

  test(`${name}: what was refused for good is forgotten, and says so again`, async () => {
    const { world, page } = await worldWith();
    const client = await page(3);
    world.collector.answers = [503];
    assert.equal((await client.answer("yes")).state, "queued");
    world.collector.answers = [422];
    await world.pass(10_000);
    const { state, reason } = await client.answer("yes");
    assert.deepEqual([state, reason.status], ["refused", 422]);
    assert.deepEqual((await world.store.charges()).map(({ mark, kept }) => [mark, kept.length]), [["", 0]]);
    const parcels = (await world.store.parcels()).map(({ report, attempts, notBefore, heldUntil }) => [report.length, attempts, notBefore, heldUntil]);
    assert.deepEqual(parcels, [[0, 0, 0, 0]]); // nor a time
    assert.deepEqual(await client.answer("no"), { state: "refused", reason, earlier: true });
    assert.deepEqual(await change(client, "no"), { state: "delivered" });
  });

  test(`${name}: an answer that waits is recognised, a changed one is paid; then both are forgotten`, async () => {
    const { world, page } = await worldWith();
    const client = await page(3);
    world.collector.answers = [503];
    assert.deepEqual(await client.answer("yes"), { state: "queued" });
    assert.deepEqual(await client.answer("no"), { state: "delivered" });
    assert.equal((await client.account()).left, "1");
    assert.deepEqual(await client.answer("yes"), { state: "delivered", earlier: true });
    assert.equal(world.collector.reports.size, 2);
    assert.deepEqual((await world.store.charges()).map(({ mark }) => mark), ["", ""]);
    world.collector.answers = ["offline"];
    assert.deepEqual(await change(client, "no"), { state: "queued" });
    assert.deepEqual(await client.answer("yes"), { state: "queued", earlier: true });
    assert.equal((await client.account()).left, "0");
  });

  test(`${name}: Rappor remembers until its survey is closed, and then pays only for what is called changed`, async () => {
    const { world, page } = await worldWith();
    const surveys = JSON.parse(readFileSync(new URL("../../../vectors/rappor.json", import.meta.url), "ascii")).surveys;
    const task = await world.collector.publish(surveys.find(({ task }) => task.ask.mechanism.instant !== null).task);
    const client = await page(1_000, { task });
    for (const week of ["1", "2"]) await client.answer(7, {}, week);
    assert.equal((await world.store.charges()).filter(({ epsilon }) => epsilon !== "0").length, 1);
    assert.equal((await world.store.charges()).length, 4); // the person, the permanent step, and two reports
    world.collector.end(task);
    await assert.rejects(page(1_000, { task }), refused("survey-closed"));
    const left = await world.store.charges();
    assert.deepEqual(left.map(({ mark, kept }) => [mark, kept.length]), [["", 0]]);
  });
}

test("forgetting concerns one task, and one report where it is given", () => {
  const charge = { day: "2026-01-01", task: "a", epsilon: "1", mark: "m", kept: Uint8Array.of(1, 2) };
  const gone = { ...charge, mark: "", kept: new Uint8Array() };
  assert.deepEqual(forgetting("a")(charge), gone);
  assert.deepEqual(forgetting("a", Uint8Array.of(1, 2))(charge), gone);
  for (const other of [forgetting("b")(charge), forgetting("a", Uint8Array.of(1, 3))(charge)]) assert.equal(other, charge);
  const person = { ...charge, epsilon: "0" };
  assert.deepEqual([forgetting("a", Uint8Array.of(1, 2))(person), forgetting("a")(person)], [person, null]);
});
