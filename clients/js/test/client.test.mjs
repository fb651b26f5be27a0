// One person's device: what it pays, what it remembers, what it sends and how often.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { openDatabase } from "../build/database.js";
import { MemoryStore } from "../build/memory.js";
import { IDBFactory } from "fake-indexeddb";

import { GRR_TASK } from "./collector.mjs";
import { World } from "./world.mjs";

const refused = (code) => (error) => error.code === code;
const vectors = (name) =>
  JSON.parse(readFileSync(new URL(`../../../vectors/${name}.json`, import.meta.url), "ascii")).surveys;

for (const [name, makeStore] of [
  ["in memory", async () => new MemoryStore()],
  ["in IndexedDB", () => openDatabase(new IDBFactory(), "veil")],
]) {
  const worldWith = async () => Object.assign(new World(), { store: await makeStore() });

  test(`${name}: an answer is paid for, delivered and never randomized again`, async () => {
    const world = await worldWith();
    const client = await world.open();
    assert.deepEqual(await client.account(), { cost: "1", left: "1" });
    assert.deepEqual(await client.answer("yes"), { state: "delivered" });
    assert.deepEqual(await client.account(), { cost: "1", left: "0" });
    for (let i = 0; i < 20; i++) await client.answer("yes");
    assert.equal(new Set(world.collector.posts).size, 1);
    assert.equal(world.collector.posts.length, 1); // once it is delivered, it need not be sent again
    assert.deepEqual(await client.answer("no"), { state: "delivered", earlier: true }); // nor can it be told from another
    assert.equal(world.collector.reports.size, 1);
    assert.equal((await world.store.charges()).length, 1);
  });

  test(`${name}: a changed answer is paid again, or refused by the budget`, async () => {
    const world = await worldWith();
    const client = await world.open({ budget: { lifetime: 2 } });
    await client.answer("yes");
    await client.answer("no", {}, undefined, true);
    assert.equal(world.collector.reports.size, 2);
    assert.equal((await client.account()).left, "0");
    const other = structuredClone(GRR_TASK);
    other.domain.labels.reverse();
    const second = await world.open({ budget: 2, task: await world.collector.publish(other) });
    await assert.rejects(second.answer("yes"), refused("budget"));
    assert.equal(world.collector.reports.size, 2);
    assert.equal(await second.waiting(), 0);
  });

  test(`${name}: the budget of a day comes back with the next, and not with a clock set back`, async () => {
    const world = await worldWith();
    const client = await world.open({ budget: { lifetime: 10, perDay: 1 } });
    await client.answer("yes");
    await assert.rejects(client.answer("no", {}, undefined, true), refused("budget"));
    world.time -= 3 * 86_400_000;
    await assert.rejects(client.answer("no", {}, undefined, true), refused("budget"));
    world.time += 4 * 86_400_000;
    await client.answer("no", {}, undefined, true);
    assert.equal((await client.account()).left, "8");
  });

  test(`${name}: a ledger once set to the year 9999 says so, and is moved back without returning budget`, async () => {
    const world = await worldWith();
    const now = world.time;
    const client = await world.open({ budget: { lifetime: 10, perDay: 1 } });
    const refusedDay = async (pattern) => {
      const problem = await client.answer("no", {}, undefined, true).then(assert.fail, (error) => error);
      assert.equal(problem.code, "budget");
      assert.match(problem.message, pattern);
    };
    await assert.rejects(client.moveClockBack(), refused("clock")); // there is nothing on record
    world.time = Date.UTC(9999, 11, 31, 12);
    await client.answer("yes");
    world.time = now;
    await refusedDay(/ledger is at 9999-12-31 and this device's clock at 2026-01-31.*moveClockBack/);
    for (const day of ["9999-12-31", "10000-01-01", "today", ""]) {
      await assert.rejects(client.moveClockBack(day), refused("clock"));
    }
    await assert.rejects(client.moveClockBack("2026-01-30"), refused("clock")); // a day that is over
    await client.moveClockBack();
    await refusedDay(/daily budget of 1$/); // what was spent in the year 9999 counts today
    world.time += 86_400_000;
    await client.answer("no", {}, undefined, true);
    assert.equal((await client.account()).left, "8");
    world.time = Date.UTC(9999, 11, 31, 12); // the day there is as spent as it was
    const other = structuredClone(GRR_TASK);
    other.domain.labels.reverse();
    const second = await world.open({ budget: { lifetime: 10, perDay: 1 }, task: await world.collector.publish(other) });
    await assert.rejects(second.answer("yes"), refused("budget"));
  });

  test(`${name}: ten charges of 0.1 are 1, exactly`, async () => {
    const world = await worldWith();
    const task = structuredClone(vectors("grr").find(({ name }) => name.includes("eps 0.1")).task);
    const labels = [...task.domain.labels, null];
    const client = await world.open({ task: await world.collector.publish(task), budget: 0.5 });
    for (const label of labels.slice(0, 5)) await client.answer(label, {}, undefined, true);
    assert.equal((await client.account()).left, "0");
    await assert.rejects(client.answer(null, {}, undefined, true), refused("budget"));
  });

  test(`${name}: a survey with a delta is paid with one, exactly, or refused`, async () => {
    const world = await worldWith();
    const vector = vectors("set-views").find(({ name }) => name.includes("hashed with a load"));
    const task = await world.collector.publish(vector.task);
    const pure = await world.open({ task, budget: 10 });
    await assert.rejects(pure.answer(["tea"]), refused("budget"));
    const [above, under] = vector.delta.map(Number);
    const budget = { lifetime: 10, delta: (2.5 * above) / under };
    await pure.raiseCaps({ delta: budget.delta });
    const client = await world.open({ task, budget });
    await client.answer(["tea"]);
    await client.answer(["milk"], {}, undefined, true);
    await client.answer(["tea"]); // delivered: nothing more is drawn
    const { delta, deltaLeft } = await client.account();
    assert.ok(Math.abs(delta / (above / under) - 1) < 1e-12);
    assert.ok(Math.abs(deltaLeft / delta - 0.5) < 1e-9);
    await assert.rejects(client.answer(["salt"], {}, undefined, true), refused("budget"));
    const charges = await world.store.charges();
    assert.deepEqual(charges.map((charge) => charge.delta), [vector.delta.join("/"), vector.delta.join("/")]);
    const plain = await world.open({ budget });
    await plain.answer("yes"); // what is pure is still granted
    assert.equal(Object.hasOwn((await world.store.charges())[2], "delta"), false);
    assert.deepEqual(Object.keys(await plain.account()), ["cost", "left"]);
  });

  test(`${name}: two tabs cannot spend the same budget twice`, async () => {
    const world = await worldWith();
    const [one, two] = [await world.open(), await world.open()];
    const outcomes = await Promise.allSettled([one, two].map((tab, i) => tab.answer(["yes", "no"][i], {}, undefined, true)));
    assert.deepEqual(outcomes.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
    assert.equal((await world.store.charges()).length, 1);
    assert.equal(world.collector.reports.size, 1);
  });

  test(`${name}: two tabs that give the same answer pay once and send the same bytes`, async () => {
    const world = await worldWith();
    const [one, two] = [await world.open(), await world.open()];
    await Promise.all([one.answer("yes"), two.answer("yes"), one.answer("yes")]);
    assert.equal((await world.store.charges()).length, 1);
    assert.equal(new Set(world.collector.posts).size, 1);
  });

  test(`${name}: the charge is on the disk before the report leaves`, async () => {
    const world = await worldWith();
    let paid = null;
    const fetch = async (address, options) => {
      if (options?.method === "POST") paid ??= (await world.store.charges()).length;
      return world.collector.fetch(address, options);
    };
    await (await world.open({}, { fetch })).answer("yes");
    assert.equal(paid, 1);
  });

  test(`${name}: without a network a report waits, over a restart, and arrives once`, async () => {
    const world = await worldWith();
    const client = await world.open();
    world.collector.answers = ["offline"];
    assert.deepEqual(await client.answer("yes"), { state: "queued" });
    assert.equal(await client.waiting(), 1);
    assert.equal(world.collector.posts.length, 0);
    client.close = () => undefined;
    world.timers = [];
    world.listeners.clear(); // the page is gone
    const again = await world.open({}, {}); // still offline: the survey as it was verified before
    assert.equal(await again.waiting(), 1);
    world.collector.answers = [];
    await world.comeOnline();
    assert.equal(await again.waiting(), 0);
    await world.pass(600_000);
    assert.equal(world.collector.posts.length, 1);
    assert.equal(world.collector.reports.size, 1);
  });
}

test("a collector that is down, or busy, still has its survey answered by who has read it before", async () => {
  for (const status of [502, 503, 429, "offline"]) {
    const world = new World();
    const down = async (address, options) => {
      if (status === "offline") throw new TypeError("no network");
      return options.method === "POST" ? world.collector.fetch(address, options) : new Response("", { status });
    };
    await assert.rejects(world.open({}, { fetch: down }), refused("offline"));
    (await world.open()).close();
    const client = await world.open({}, { fetch: down });
    assert.equal((await client.answer("yes")).state, status === "offline" ? "queued" : "delivered");
    await assert.rejects(world.open({ key: new World().collector.key }, { fetch: down }), refused("survey-key"));
  }
});

test("a lost acknowledgement is followed by the same bytes, and counted once", async () => {
  const world = new World();
  const client = await world.open();
  world.collector.answers = ["lost", "lost"];
  assert.deepEqual(await client.answer("yes"), { state: "queued" });
  await world.pass(2_000);
  await world.pass(4_000);
  assert.equal(await client.waiting(), 0);
  assert.equal(world.collector.posts.length, 3);
  assert.equal(new Set(world.collector.posts).size, 1);
  assert.equal(world.collector.reports.size, 1);
});

test("attempts come at growing intervals", async () => {
  const world = new World();
  const client = await world.open();
  world.collector.answers = Array(12).fill(503);
  await client.answer("yes");
  const waits = [];
  while (await client.waiting()) {
    const wait = Math.min(...world.timers.map(({ at }) => at)) - world.time;
    waits.push(wait);
    await world.pass(wait);
  }
  assert.equal(waits.length, 12);
  waits.forEach((wait, i) => {
    const nominal = Math.min(1_000 * 2 ** i, 300_000);
    assert.ok(wait >= 0.5 * nominal && wait <= 1.5 * nominal, `attempt ${i} after ${wait} ms`);
  });
});

for (const [name, header] of [
  ["seconds", "120"],
  ["a date", new Date(Date.UTC(2026, 0, 31, 12, 2)).toUTCString()],
]) {
  test(`Retry-After in ${name} is kept, even when the network returns or somebody answers`, async () => {
    const world = new World();
    const client = await world.open();
    world.collector.answers = [[429, { "Retry-After": header }]];
    assert.deepEqual(await client.answer("yes"), { state: "queued" });
    await world.pass(119_000);
    await world.comeOnline();
    await client.deliver();
    assert.deepEqual(await client.answer("yes"), { state: "queued" });
    assert.equal(world.collector.posts.length, 1);
    await world.pass(1_000);
    assert.equal(world.collector.posts.length, 2);
    assert.equal(await client.waiting(), 0);
  });
}

test("what the collector will never take is not tried again, and its reason is kept", async () => {
  for (const status of [400, 403, 404, 410, 413, 422]) {
    const world = new World();
    const client = await world.open();
    world.collector.answers = [status];
    const receipt = await client.answer("yes");
    assert.deepEqual(receipt, { state: "refused", reason: { status, code: "told_to", message: "refused: told_to" } });
    assert.deepEqual(await client.answer("yes"), { ...receipt, earlier: true });
    await world.pass(600_000);
    assert.equal(world.collector.posts.length, 1);
    assert.equal(await client.waiting(), 0);
  }
});

test("what it may take later is tried again", async () => {
  for (const status of [408, 429, 500, 502, 503, 504]) {
    const world = new World();
    const client = await world.open();
    world.collector.answers = [status];
    assert.deepEqual(await client.answer("yes"), { state: "queued" });
    await world.pass(1_500);
    assert.equal(world.collector.reports.size, 1);
  }
});

test("a survey that is not open yet gets the same bytes again, once it opens and not before", async () => {
  const world = new World();
  const client = await world.open();
  const opens = new Date(world.time + 3_600_000).toISOString().replace(".000Z", "Z");
  await world.collector.publish(GRR_TASK, { opens }); // put off after this page was opened
  world.collector.answers = [409];
  assert.deepEqual(await client.answer("yes"), { state: "queued" });
  for (let i = 0; i < 59; i++) await world.pass(60_000);
  await world.comeOnline();
  await client.deliver();
  assert.equal(world.collector.posts.length, 1);
  await world.pass(60_000 + 1_500); // not all devices in the same second
  assert.equal(world.collector.posts.length, 2);
  assert.equal(new Set(world.collector.posts).size, 1);
  assert.equal(world.collector.reports.size, 1);
  assert.equal((await world.store.charges()).length, 1);
  assert.equal(await client.waiting(), 0);
});

test("a survey that should be open, but is not by the collector's clock, is tried at growing intervals", async () => {
  const world = new World();
  const client = await world.open();
  world.collector.answers = Array(5).fill(409);
  await client.answer("yes");
  for (let i = 0; i < 5; i++) {
    const wait = Math.min(...world.timers.map(({ at }) => at)) - world.time;
    assert.ok(wait >= 500 * 2 ** i && wait <= 1_500 * 2 ** i, `attempt ${i} after ${wait} ms`);
    await world.pass(wait);
  }
  assert.equal(world.collector.reports.size, 1);
});

test("a survey that is not open yet does not hold up the others", async () => {
  const world = new World();
  const client = await world.open({ budget: 2 });
  const other = structuredClone(GRR_TASK);
  other.domain.labels.reverse();
  const second = await world.open({ budget: 2, task: await world.collector.publish(other) });
  world.collector.answers = [503];
  await second.answer("yes");
  world.collector.answers = [409];
  assert.deepEqual(await client.answer("yes"), { state: "queued" });
  assert.equal(world.collector.reports.size, 1);
  assert.equal(await client.waiting(), 1);
});

test("a survey that closes while its reports wait for it to open ends their waiting", async () => {
  const world = new World();
  const client = await world.open();
  world.collector.answers = [409];
  await client.answer("yes");
  world.collector.end(client.task);
  await world.pass(1_500);
  assert.equal(world.collector.posts.length, 2);
  assert.equal(await client.waiting(), 0);
  assert.equal((await world.store.parcels())[0].refusal.code, "survey-closed");
});

test("a clock that is set back does not make a report wait for it to catch up", async () => {
  const world = new World();
  const client = await world.open();
  world.collector.answers = [[429, { "Retry-After": "120" }]];
  await client.answer("yes");
  world.time -= 3 * 86_400_000;
  await client.deliver();
  assert.equal(await client.waiting(), 0);
});

test("a page that answers 200 with something else has not acknowledged anything", async () => {
  const world = new World();
  const portal = async (address, options) =>
    options?.method === "POST" ? new Response("<p>Please log in</p>") : world.collector.fetch(address, options);
  const client = await world.open({}, { fetch: portal });
  assert.deepEqual(await client.answer("yes"), { state: "queued" });
});

test("a report that the collector chokes on does not hold up the others", async () => {
  const world = new World();
  let choked = null;
  const fetch = async (address, options) => {
    if (options.method !== "POST") return world.collector.fetch(address, options);
    choked ??= options.body; // the first report
    return options.body === choked ? new Response("", { status: 500 }) : world.collector.fetch(address, options);
  };
  const client = await world.open({ budget: 20 }, { fetch });
  assert.equal((await client.answer("yes")).state, "queued");
  assert.equal((await client.answer("no")).state, "delivered");
  assert.equal(await client.waiting(), 1);
});

test("nothing is sent when the ledger cannot be written", async () => {
  const world = new World();
  const client = await world.open();
  world.store.commit = async () => {
    throw Object.assign(new Error("disk full"), { code: "storage" });
  };
  await assert.rejects(world.open(), refused("storage"));
  await assert.rejects(client.answer("yes"), refused("storage"));
  assert.equal(world.collector.posts.length, 0);
});

test("no database, or a damaged ledger, grants nothing", async () => {
  await assert.rejects(openDatabase(undefined, "veil"), refused("storage"));
  const factory = new IDBFactory();
  const store = await openDatabase(factory, "veil");
  const world = Object.assign(new World(), { store });
  const client = await world.open();
  await store.commit(() => [{ day: "2026-01-01", task: "t", epsilon: "-1", mark: "m", kept: new Uint8Array(1) }], {
    id: "x",
    collector: "elsewhere",
    task: "t",
    report: new Uint8Array(1),
    attempts: 0,
    notBefore: 0,
    heldUntil: 0,
    refusal: null,
  });
  await assert.rejects(client.answer("yes"), refused("storage"));
  assert.equal(world.collector.posts.length, 0);
});

// A survey of one Rappor question, with or without the instantaneous step, and two values of its domain.
async function lasting(world, { instant = true, ...changes } = {}) {
  const { task } = vectors("rappor").find(({ task }) => (task.ask.mechanism.instant !== null) === instant);
  return { task: await world.collector.publish({ ...task, ...changes }), budget: 1_000 };
}

const paid = async ({ store }) => (await store.charges()).filter(({ epsilon }) => epsilon !== "0");
const payloads = ({ collector }) => collector.posts.map((post) => post.slice(98));
const DAY = 86_400_000;

test("a longitudinal mechanism pays once, and reports afresh from its permanent step on another day", async () => {
  const world = new World();
  const client = await world.open(await lasting(world));
  const before = Number((await client.account()).left);
  for (let i = 0; i < 5; i++, world.time += DAY) await client.answer(7);
  assert.equal(new Set(world.collector.posts).size, 5);
  assert.equal(world.collector.reports.size, 5);
  assert.equal((await paid(world)).length, 1);
  assert.ok(Math.abs(before - Number((await client.account()).left) - Number((await client.account()).cost)) < 1e-9);
});

test("a longitudinal answer given again on the same occasion is the same bytes, and counted once", async () => {
  const world = new World();
  const client = await world.open(await lasting(world));
  world.collector.answers = ["lost", 503];
  for (let i = 0; i < 5; i++, world.time += 1_000) await client.answer(7);
  client.close();
  const again = await world.open(await lasting(world)); // the page is loaded again
  await again.answer(7);
  assert.deepEqual([new Set(world.collector.posts).size, world.collector.reports.size], [1, 1]);
  await again.answer(7, {}, "week 5");
  world.time += 3 * DAY;
  await again.answer(7, {}, "week 5");
  assert.deepEqual([new Set(world.collector.posts).size, world.collector.reports.size], [2, 2]);
  for (const wrong of ["", 5, null]) await assert.rejects(again.answer(7, {}, wrong), refused("value"));
});

test("a report waits for its collector however that is spelled, and follows it to another address", async () => {
  const world = new World();
  world.collector.answers = [503, [429, { "Retry-After": "80000" }]];
  const client = await world.open({ collector: "HTTPS://Collector.test:443/" });
  assert.deepEqual(await client.answer("yes"), { state: "queued" });
  const again = await world.open();
  assert.equal(await again.waiting(), 1);
  await again.deliver();
  assert.equal(await again.waiting(), 1);
  world.collector.address = "https://collector.test/below";
  const moved = await world.open();
  assert.equal(await moved.waiting(), 0);
  assert.deepEqual(await moved.answer("yes"), { state: "delivered" });
  assert.deepEqual([await again.waiting(), world.collector.reports.size], [0, 1]);
});

test("an occasion is refused where an answer is given once", async () => {
  const world = new World();
  await assert.rejects((await world.open()).answer("yes", {}, "today"), refused("value"));
  assert.equal(world.collector.posts.length, 0);
});

test("a person stays in one cohort, whatever they hold; two people do not always share one", async () => {
  const cohorts = new Set();
  for (let person = 0; person < 12; person++) {
    const world = new World();
    const client = await world.open(await lasting(world, { instant: false }));
    for (const value of [3, 1, 4, 1, 5, 9, 2, 6]) await client.answer(value);
    const own = new Set(payloads(world).map((payload) => payload.slice(0, 2)));
    assert.equal(own.size, 1);
    assert.equal(new Set(payloads(world)).size, 7);
    assert.equal((await paid(world)).length, 7);
    cohorts.add([...own][0]);
  }
  assert.ok(cohorts.size > 1); // 12 people in one of 8 cohorts: once in 8 billion
});

test("a longitudinal mechanism within a tree is refused: nothing of the person would last there", async () => {
  const { task } = vectors("rappor")[0];
  const trees = [
    { kind: "all-of", asks: [task.ask, task.ask] },
    { kind: "one-of", branches: [[1, task.ask], [2, task.ask]] },
  ];
  for (const ask of trees) {
    const world = new World();
    const published = await world.collector.publish({ ...task, ask });
    await assert.rejects(world.open({ task: published, budget: 1_000 }), refused("survey-unsupported"));
    assert.deepEqual([await world.store.charges(), world.collector.posts], [[], []]);
  }
});

test("tabs that answer at once agree on the cohort", async () => {
  const world = new World();
  const options = await lasting(world, { instant: false });
  const tabs = await Promise.all([world.open(options), world.open(options), world.open(options)]);
  await Promise.all(tabs.map((tab, i) => tab.answer(i % 2)));
  assert.equal(new Set(payloads(world).map((payload) => payload.slice(0, 2))).size, 1);
  assert.deepEqual([world.collector.reports.size, (await paid(world)).length], [2, 2]);
});

test("a permanent step without a second one gives the same payload under new ids", async () => {
  const world = new World();
  const client = await world.open(await lasting(world, { instant: false }));
  for (let i = 0; i < 5; i++) await client.answer(7, {}, `visit ${i}`);
  assert.equal(new Set(world.collector.posts).size, 5);
  assert.equal(new Set(payloads(world)).size, 1);
});

test("a longitudinal mechanism's public columns change freely: the memo is the same", async () => {
  const world = new World();
  const client = await world.open(await lasting(world, { public: [["region", 0]] }));
  for (const region of [1, 2, 3]) await client.answer(7, { region });
  assert.equal((await paid(world)).length, 1);
  assert.equal(world.collector.reports.size, 3);
});

test("charge and parcel are written together or not at all", async () => {
  const store = await openDatabase(new IDBFactory(), "veil");
  const charge = { day: "2026-01-01", task: "t", epsilon: "1", mark: "m", kept: new Uint8Array(1) };
  await assert.rejects(
    store.commit(() => [charge], { id: "x", report: () => "no browser can store a function" }),
    refused("storage"),
  );
  assert.deepEqual([await store.charges(), await store.parcels()], [[], []]);
});

test("public columns travel with the answer, and belong to it", async () => {
  const world = new World();
  const { task, cases } = vectors("one-of").find(({ task }) => task.public.length);
  const client = await world.open({ task: await world.collector.publish(task), budget: 1_000 });
  const [{ value, public: beside }] = cases;
  await client.answer(value, beside);
  await client.answer(value, beside);
  assert.equal(new Set(world.collector.posts).size, 1);
  await client.answer(value, { ...beside, region: 8 }, undefined, true);
  assert.equal(new Set(world.collector.posts).size, 2);
  await assert.rejects(client.answer(value), refused("value"));
  await assert.rejects(client.answer(value, { ...beside, more: 1 }), refused("value"));
  await assert.rejects(client.answer(value, { ...beside, region: 0.5 }), refused("value"));
});

test("requests carry no cookies and no address of the page", async () => {
  const world = new World();
  const seen = [];
  const fetch = (address, options) => (seen.push(options), world.collector.fetch(address, options));
  await (await world.open({}, { fetch })).answer("yes");
  assert.ok(seen.length >= 2);
  for (const options of seen) {
    assert.deepEqual([options.credentials, options.referrerPolicy, options.redirect], ["omit", "no-referrer", "error"]);
  }
});

test("a closed client sends nothing more", async () => {
  const world = new World();
  const client = await world.open();
  world.collector.answers = [503];
  await client.answer("yes");
  client.close();
  await world.pass(600_000);
  await world.comeOnline();
  assert.equal(world.collector.posts.length, 1);
  await world.settle();
});
