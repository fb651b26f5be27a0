// Surveys by their name: the latest wave, signed for that name, and paid for like any other survey.

import assert from "node:assert/strict";
import { test } from "node:test";

import { IDBFactory } from "fake-indexeddb";

import { fromBase64url, toBase64url } from "../build/bytes.js";
import { openDatabase } from "../build/database.js";
import { MemoryStore } from "../build/memory.js";

import { Collector, GRR_TASK } from "./collector.mjs";
import { World } from "./world.mjs";

const refused = (code) => (error) => error.code === code;
const TEXTS = { de: "Wirklich?", en: "Really?" };

// The same question once more: from the second wave on, its number makes it a task of its own.
const wave = (number) => (number === 1 ? GRR_TASK : { ...GRR_TASK, wave: number });

test("every wave is paid for, and a retry within one is not", async () => {
  const world = new World();
  const budget = { lifetime: 2 };
  for (const number of [1, 2]) {
    const task = await world.collector.publishWave("really", wave(number), TEXTS);
    const client = await world.open({ name: "really", budget });
    assert.deepEqual([client.task, client.wave, client.text("de-CH")], [task, number, "Wirklich?"]);
    assert.deepEqual(await client.answer("yes"), { state: "delivered" });
    for (const again of [client, await world.open({ name: "really", budget })]) {
      assert.deepEqual(await again.answer("yes"), { state: "delivered", earlier: true });
    }
    assert.equal(world.collector.reports.size, number);
    assert.deepEqual((await world.store.charges()).map((charge) => charge.task).slice(number - 1), [task]);
  }
  await world.collector.publishWave("really", wave(3), TEXTS);
  const third = await world.open({ name: "really", budget });
  assert.equal(third.wave, 3);
  await assert.rejects(third.answer("yes"), refused("budget"));
  assert.equal(world.collector.reports.size, 2);
  assert.equal(await third.waiting(), 0);
});

test("the latest wave that is open is answered", async () => {
  const world = new World();
  const [first, second] = [
    await world.collector.publishWave("really", wave(1)),
    await world.collector.publishWave("really", wave(2)),
  ];
  assert.equal((await world.open({ name: "really" })).task, second);
  world.collector.end(second);
  await assert.rejects(world.open({ name: "really" }), refused("survey-rollback")); // this device has seen the second
  world.store = new MemoryStore(); // another device
  assert.equal((await world.open({ name: "really" })).task, first);
  world.collector.end(first);
  await assert.rejects(world.open({ name: "really" }), refused("survey-closed"));
  await assert.rejects(world.open({ name: "other" }), refused("survey-unknown"));
});

// A device whose database outlives every visit; `restart` opens it again.
const STORES = {
  "in memory": () => {
    const store = new MemoryStore();
    return async () => store;
  },
  "in IndexedDB": () => {
    const factory = new IDBFactory();
    return () => openDatabase(factory, "veil");
  },
};

for (const [where, device] of Object.entries(STORES)) {
  test(`${where}: a wave that was shown before a later one is refused, and nothing is paid`, async () => {
    const restart = device();
    const world = Object.assign(new World(), { store: await restart() });
    const options = { name: "really", budget: 9 };
    const first = await world.collector.publishWave("really", wave(1));
    await (await world.open(options)).answer("yes");
    const second = await world.collector.publishWave("really", wave(2));
    const open = await world.open(options);
    await open.answer("yes");
    const [charges, posts] = [await world.store.charges(), world.collector.posts.length];
    assert.equal(charges.length, 2);

    const latest = world.collector.published(second);
    world.collector.replace(second, world.collector.published(first)); // somebody shows it again, signed as it was
    for (let i = 0; i < 2; i++) {
      world.store = await restart();
      await assert.rejects(world.open(options), refused("survey-rollback"));
    }
    world.time += 301_000;
    await assert.rejects(open.answer("no"), refused("survey-rollback"));
    world.store = await restart();
    assert.deepEqual([await world.store.charges(), world.collector.posts.length], [charges, posts]);

    assert.equal((await world.open({ ...options, name: undefined, task: first })).wave, 1); // by its id it is no other
    world.collector.replace(second, latest);
    assert.deepEqual(await (await world.open(options)).answer("no", {}, undefined, true), { state: "delivered" });
  });

  test(`${where}: a tab with an earlier wave is refused once another tab has seen a later one`, async () => {
    const restart = device();
    const world = Object.assign(new World(), { store: await restart() });
    await world.collector.publishWave("really", wave(1));
    const tab = await world.open({ name: "really" });
    await world.collector.publishWave("really", wave(2));
    world.store = await restart();
    await world.open({ name: "really" });
    await assert.rejects(tab.answer("yes"), refused("survey-rollback"));
    assert.deepEqual([await world.store.charges(), world.collector.posts], [[], []]);
  });

  test(`${where}: a look at the survey by its task id is no look at its name`, async () => {
    const restart = device();
    const world = Object.assign(new World(), { store: await restart() });
    const options = { name: "really", budget: 9 };
    const task = await world.collector.publishWave("really", wave(1));
    const tab = await world.open(options);
    world.collector.answers = [409]; // "not open yet": the tab looks when the survey opens, by its task id
    const { about, ...bare } = world.collector.published(task);
    world.collector.replace(task, bare);
    assert.deepEqual(await tab.answer("yes"), { state: "queued" });
    world.collector.replace(task, { ...bare, about });
    await world.collector.publishWave("really", wave(2));
    world.store = await restart();
    await world.open(options);
    await assert.rejects(tab.answer("no"), refused("survey-rollback"));
    assert.equal((await world.store.charges()).length, 1);
  });

  test(`${where}: waves of two names, and of two keys, do not mix`, async () => {
    const world = Object.assign(new World(), { store: await device()() });
    for (const number of [1, 2]) await world.collector.publishWave("really", wave(number));
    assert.equal((await world.open({ name: "really" })).wave, 2);
    const column = { ...GRR_TASK, public: [["age", 0]] };
    await world.collector.publishWave("really-2", column);
    assert.equal((await world.open({ name: "really-2" })).wave, 1);
    const [other, before] = [new Collector(), world.collector];
    await other.publishWave("really", wave(1));
    world.collector = other; // at the same address
    assert.equal((await world.open({ name: "really" })).wave, 1);
    assert.equal((await world.open({ name: "really", key: [before.key, other.key] })).wave, 1);
  });
}

test("a statement that was not renewed is refused, and the clock may be a day off", async () => {
  const world = new World();
  const until = Date.parse(world.collector.validUntil);
  const task = await world.collector.publishWave("really", wave(1));
  const [options, day] = [{ name: "really", budget: 9 }, 86_400_000];
  for (const off of [-day, day]) {
    world.time = until - 1 + off; // at the collector it is the statement's last moment
    await (await world.open(options)).answer("yes");
  }
  const client = await world.open(options);
  world.time = until + day;
  const posts = world.collector.posts.length;
  await assert.rejects(world.open(options), refused("survey-outdated"));
  world.time += 301_000;
  await assert.rejects(client.answer("no"), refused("survey-outdated"));
  assert.deepEqual([(await world.store.charges()).length, world.collector.posts.length], [1, posts]);
  assert.equal((await world.open({ task, budget: options.budget })).wave, 1); // by its task id nothing else can be shown in its place
  const renewed = world.collector.about({ name: "really", task, valid_until: "2026-04-01T00:00:00Z" });
  world.collector.replace(task, { ...world.collector.published(task), about: renewed });
  await (await world.open(options)).answer("no", {}, undefined, true);
  assert.equal((await world.store.charges()).length, 2);
});

test("without a network an answer is given while the statement on the device is valid", async () => {
  const world = new World();
  await world.collector.publishWave("really", wave(1));
  await world.open({ name: "really" });
  world.collector.answers = ["offline"];
  world.time = Date.parse(world.collector.validUntil) + 86_400_000 - 1;
  const client = await world.open({ name: "really" });
  assert.deepEqual(await client.answer("yes"), { state: "queued" });
  world.time += 1;
  await assert.rejects(world.open({ name: "really" }), refused("survey-outdated"));
  await assert.rejects(client.answer("no"), refused("survey-outdated"));
  assert.equal((await world.store.charges()).length, 1);
  world.collector.answers = [];
  await client.deliver(); // what was paid for in time
  assert.equal(world.collector.reports.size, 1);
});

test("a database of an older version has no caps: nothing is spent, and it stays as it is", async () => {
  const factory = new IDBFactory();
  const opened = (version) =>
    new Promise((resolve, reject) => {
      const request = factory.open("veil", version);
      request.onerror = reject;
      request.onupgradeneeded = () => request.result.createObjectStore("charges", { autoIncrement: true });
      request.onsuccess = () => resolve(request.result);
    });
  (await opened(2)).close();
  await assert.rejects(openDatabase(factory, "veil"), refused("storage"));
  const { version, objectStoreNames } = await opened();
  assert.deepEqual([version, [...objectStoreNames]], [2, ["charges"]]);
});

test("what is said about a survey is signed with the survey's key, not with another that the page knows", async () => {
  const world = new World();
  const task = await world.collector.publishWave("really", wave(1));
  const other = new Collector();
  const about = other.about({ name: "really", task });
  world.collector.replace(task, { ...world.collector.published(task), about });
  await assert.rejects(world.open({ name: "really", key: [world.collector.key, other.key] }), refused("survey-key"));
});

test("an answer goes to the wave that the person was asked", async () => {
  const world = new World();
  await world.collector.publishWave("really", wave(1));
  const client = await world.open({ name: "really" });
  await world.collector.publishWave("really", wave(2));
  world.time += 301_000; // it looks again before an answer is paid for
  for (let i = 0; i < 2; i++) await assert.rejects(client.answer("yes"), refused("survey-wave"));
  assert.deepEqual([await world.store.charges(), world.collector.posts, client.wave], [[], [], 1]);
});

test("a report that came too early asks for its own wave, not for the latest", async () => {
  const world = new World();
  const task = await world.collector.publishWave("really", wave(1));
  const client = await world.open({ name: "really" });
  const { about } = world.collector.published(task);
  const opens = new Date(world.time + 3_600_000).toISOString().replace(".000", "");
  await world.collector.publish(wave(1), { opens });
  world.collector.replace(task, { ...world.collector.published(task), about });
  await world.collector.publishWave("really", wave(2));
  world.collector.answers = [409];
  assert.deepEqual(await client.answer("yes"), { state: "queued" });
  const [parcel] = await world.store.parcels();
  assert.equal(parcel.opens, world.time + 3_600_000);
});

test("without a network the copy of a name is verified again", async () => {
  const world = new World();
  await world.collector.publishWave("really", wave(1), TEXTS);
  await world.open({ name: "really" });
  world.collector.answers = ["offline"];
  const client = await world.open({ name: "really" });
  assert.deepEqual([client.wave, client.text()], [1, "Really?"]);
  assert.deepEqual(await client.answer("yes"), { state: "queued" });
  const address = (name) => `${world.collector.address}/v1/surveys/by-name/${name}`;
  await world.store.keepEnvelope(address("other"), await world.store.envelope(address("really")));
  await assert.rejects(world.open({ name: "other" }), refused("survey-name"));
});

test("another survey cannot be handed out under a name", async () => {
  const world = new World();
  const { collector } = world;
  const asked = await collector.publishWave("really", wave(1), TEXTS);
  const other = await collector.publishWave("other", wave(2), TEXTS);
  const plain = await collector.publish(wave(3));
  const right = collector.published(asked);
  const altered = (from, to) => {
    const text = new TextDecoder().decode(fromBase64url(right.about.document));
    assert.ok(text.includes(from));
    return { ...right.about, document: toBase64url(new TextEncoder().encode(text.replace(from, to))) };
  };
  const said = (document) => ({ ...right, about: collector.about({ name: "really", task: asked, ...document }) });
  const { document } = right.about;
  const { valid_until, ...rest } = JSON.parse(new TextDecoder().decode(fromBase64url(document)));
  assert.ok(valid_until);
  const endless = { ...right, about: collector.envelope(rest, "veil-survey-about-v1") }; // as it was once signed
  const elsewhere = new World().collector; // another key
  for (const [envelope, code] of [
    [collector.published(other), "survey-name"],
    [collector.published(plain), "survey-name"],
    [said({ name: "other" }), "survey-name"],
    [{ ...collector.published(other), about: right.about }, "survey-task"],
    [{ ...right, about: altered("Really?", "Harmless?") }, "survey-signature"],
    [{ ...right, about: altered('"name":"really"', '"name":"other"') }, "survey-signature"],
    [{ ...right, about: elsewhere.about({ name: "really", task: asked }) }, "survey-key"],
    [{ ...right, about: { document: right.document, key: right.key, signature: right.signature } }, "survey-signature"],
    [{ ...right, about: null }, "survey-form"],
    [{ ...right, about: {} }, "survey-form"],
    [said({ wave: 0 }), "survey-form"],
    [said({ wave: "1" }), "survey-form"],
    [said({ texts: [] }), "survey-form"],
    [said({ texts: { de: 3 } }), "survey-form"],
    [said({ name: 3 }), "survey-form"],
    [said({ more: 1 }), "survey-form"],
    [said({ valid_until: null }), "survey-form"],
    [said({ valid_until: "2026-03-02" }), "survey-form"],
    [endless, "survey-form"],
    [said({ version: 2 }), "survey-form"],
  ]) {
    collector.replace(asked, envelope);
    await assert.rejects(world.open({ name: "really" }), refused(code), JSON.stringify(envelope.about));
  }
  collector.replace(asked, { ...right, about: altered("Really?", "Harmless?") }); // by the task id, too
  await assert.rejects(world.open({ task: asked }), refused("survey-signature"));
  collector.replace(asked, right);
  assert.equal((await world.open({ name: "really" })).task, asked);
  assert.deepEqual(await world.store.charges(), []);
});

test("a survey without a name has no wave and no text; by its task id, one with a name has both", async () => {
  const world = new World();
  const plain = await world.open();
  assert.deepEqual([plain.wave, plain.text("de"), plain.text()], [null, null, null]);
  const named = await world.open({ task: await world.collector.publishWave("really", wave(1), TEXTS) });
  assert.deepEqual([named.wave, named.text("fr", "de-AT")], [1, "Wirklich?"]);
});

test("what is neither a task id nor a name is asked nowhere", async () => {
  const world = new World();
  let asked = 0;
  const fetch = async () => void asked++;
  for (const name of ["", "../admin", "a b", "a/b", "a.b", "Really", "really\n", "x".repeat(64), null, 3]) {
    await assert.rejects(world.open({ name }, { fetch }), refused("task"));
  }
  for (const task of ["really", "0".repeat(63), "0".repeat(65), 3]) {
    await assert.rejects(world.open({ task }, { fetch }), refused("task"));
  }
  await assert.rejects(world.open({ name: "really", task: "0".repeat(64) }, { fetch }), refused("task"));
  assert.equal(asked, 0);
});
