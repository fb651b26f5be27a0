// What a device refuses before anybody answers: broken promises, altered documents, foreign keys, closed surveys.

import assert from "node:assert/strict";
import { test } from "node:test";

import { encodeText, toBase64url } from "../build/bytes.js";
import { canonical, decimal, decimalText, parse } from "../build/canonical.js";
import { readDomain } from "../build/domains.js";
import { epsilonOf } from "../build/ratio.js";
import { Survey } from "../build/survey.js";
import { GRR_TASK } from "./collector.mjs";
import { World } from "./world.mjs";

const withStay = (stay) =>
  structuredClone({
    ...GRR_TASK,
    ask: { ...GRR_TASK.ask, mechanism: { ...GRR_TASK.ask.mechanism, thresholds: { stay } } },
  });
const refused = (code) => (error) => error.code === code;

test("a threshold one ulp too high breaks the promise, one at the limit keeps it", async () => {
  assert.equal((await Survey.read(withStay("bb26a7aead15e6ca"))).cost, "1");
  await assert.rejects(Survey.read(withStay("bb26a7aead15e6cb")), refused("survey-ratio"));
  await assert.rejects(Survey.read(withStay("ffffffffffffffff")), refused("survey-ratio"));
  await assert.rejects(Survey.read(withStay("0000000000000000")), refused("survey-ratio"));
});

test("a survey that breaks its promise is refused though its signature is right", async () => {
  const world = new World();
  const task = await world.collector.publish(withStay("bb26a7aead15e6cb"));
  await assert.rejects(world.open({ task }), refused("survey-ratio"));
});

test("a geometry over a number that is no prime is refused", async () => {
  const pgr = (prime) => ({
    ...GRR_TASK,
    domain: { kind: "categories", missing: "refuse", size: 12 },
    ask: {
      kind: "question",
      view: { kind: "identity" },
      mechanism: { kind: "PGR", epsilon: "5", prime, dimension: 2, thresholds: { orthogonal: "2000000000000000" } },
    },
  });
  await Survey.read(pgr(11));
  await assert.rejects(Survey.read(pgr(15)), refused("survey-form")); // 15 is no prime: its geometry promises nothing
});

test("the cost is the smallest double that covers the ratio", () => {
  assert.equal(epsilonOf([1n, 1n]), 0);
  assert.equal(epsilonOf([3n, 1n]), 1.0986122886681098); // Python's Guarantee(Fraction(3)).epsilon
  const tiny = epsilonOf([10n ** 30n + 1n, 10n ** 30n]);
  assert.ok(tiny > 0.999e-30 && tiny < 1.001e-30);
});

test("an altered document, signature or key is refused", async () => {
  const world = new World();
  const task = await world.collector.publish(GRR_TASK);
  const envelope = await (await world.collector.fetch(`${world.collector.address}/v1/surveys/${task}`)).json();
  const document = Buffer.from(envelope.document, "base64url").toString();
  const flip = (text, at) => text.slice(0, at) + (text[at] === "A" ? "B" : "A") + text.slice(at + 1);
  const cases = [
    [{ ...envelope, document: toBase64url(encodeText(document.replace("3600", "7200"))) }, "survey-signature"],
    [{ ...envelope, signature: flip(envelope.signature, 10) }, "survey-signature"],
    [{ ...envelope, signature: envelope.signature.slice(0, 84) }, "survey-signature"],
    [{ ...envelope, key: flip(envelope.key, 3) }, "survey-key"],
    [{ ...envelope, document: `${envelope.document}=` }, "survey-form"],
    [{ key: envelope.key }, "survey-form"],
    [null, "survey-form"],
    [[], "survey-form"],
  ];
  for (const [altered, code] of cases) {
    world.collector.replace(task, altered);
    await assert.rejects(world.open({ task }), refused(code), code);
  }
  world.collector.replace(task, envelope);
  (await world.open({ task })).close();
});

test("a key that the page did not pin is refused, and several may be pinned", async () => {
  const world = new World();
  const other = new World().collector.key;
  await assert.rejects(world.open({ key: other }), refused("survey-key"));
  await assert.rejects(world.open({ key: [] }), refused("survey-key"));
  await assert.rejects(world.open({ key: "AAAA" }), refused("survey-key"));
  (await world.open({ key: [other, world.collector.key] })).close();
});

test("the step of answers is shown as it was signed", async () => {
  const world = new World();
  for (const [terms, step] of [
    [{}, 1],
    [{ step: 100 }, 100],
  ]) {
    const client = await world.open({ task: await world.collector.publish(GRR_TASK, terms) });
    assert.equal(client.step, step);
    client.close();
  }
});

test("another survey of the same collector is refused", async () => {
  const world = new World();
  const asked = await world.collector.publish(GRR_TASK);
  const other = {
    closes: null,
    kind: "veil-published-survey",
    opens: null,
    precision: 60,
    survey: withStay("bb00000000000000"),
    version: 1,
  };
  world.collector.replace(asked, world.collector.envelope(other));
  await assert.rejects(world.open({ task: asked }), refused("survey-task"));
});

test("times finer than an hour are refused, unless the page allows them", async () => {
  const world = new World();
  const task = await world.collector.publish(GRR_TASK, { precision: 3599 });
  await assert.rejects(world.open({ task }), refused("survey-fine-times"));
  assert.equal((await world.store.charges()).length, 0);
  const client = await world.open({ task, allowFineTimes: true });
  assert.deepEqual(await client.answer("yes"), { state: "delivered" });
  await world.collector.publish(GRR_TASK);
  const coarse = await world.open({ task });
  await world.collector.publish(GRR_TASK, { precision: 1 }); // the collector signs other terms while the page is open
  await world.pass(301_000);
  await assert.rejects(coarse.answer("no"), refused("survey-fine-times"));
  assert.equal((await world.store.charges()).length, 1);
});

test("documents of another form are refused though signed", async () => {
  const world = new World();
  const good = {
    closes: null,
    kind: "veil-published-survey",
    opens: null,
    precision: 3600,
    survey: GRR_TASK,
    version: 1,
  };
  const task = await world.collector.publish(GRR_TASK);
  const documents = [
    { ...good, version: 2 },
    { ...good, kind: "veil-survey" },
    { ...good, note: "more" },
    { ...good, precision: 0 },
    { ...good, precision: "3600" },
    { ...good, keep_days: 0 },
    { ...good, step: 0 },
    { ...good, step: "5" },
    { ...good, step: null },
    { ...good, keep_days: null },
    { ...good, opens: "2026-01-31" },
    { ...good, opens: "2026-02-30T00:00:00Z" },
    { ...good, closes: 1 },
    { ...good, survey: { ...GRR_TASK, version: 2 } },
    { ...good, survey: null },
    JSON.stringify(good, null, 1),
    canonical(good).replace('"version":1}', '"version":1,"version":1}'),
    canonical(good).replace("3600", "3600.0"),
    "\uFEFF" + canonical(good),
    "[".repeat(100_000),
  ];
  for (const document of documents) {
    world.collector.replace(task, world.collector.envelope(document));
    await assert.rejects(world.open({ task }), refused("survey-form"));
  }
});

test("a survey that is not open yet, or closed, is refused, also between opening and answering", async () => {
  const world = new World();
  const [before, after] = ["2026-01-31T11:59:59Z", "2026-01-31T12:00:01Z"];
  await assert.rejects(
    async () => world.open({ task: await world.collector.publish(GRR_TASK, { opens: after }) }),
    (error) => refused("survey-not-open")(error) && error.message.includes(after),
  );
  await assert.rejects(
    async () => world.open({ task: await world.collector.publish(GRR_TASK, { closes: before }) }),
    refused("survey-closed"),
  );
  await assert.rejects(
    async () => world.open({ task: await world.collector.publish(GRR_TASK, { closes: "2026-01-31T12:00:00Z" }) }),
    refused("survey-closed"),
  );
  const client = await world.open({ task: await world.collector.publish(GRR_TASK, { opens: before, closes: after }) });
  world.time += 1_000;
  await assert.rejects(client.answer("yes"), refused("survey-closed"));
  assert.equal((await client.account()).left, "1");
});

test("a survey that the collector calls over is refused, unpaid, and without a network too", async () => {
  for (const code of ["survey-closed", "survey-expired"]) {
    const world = new World();
    const { task } = await world.open();
    world.collector.end(task, code);
    await assert.rejects(world.open({ task }), refused("survey-closed"));
    world.collector.answers = ["offline"];
    await assert.rejects(world.open({ task }), refused("offline"));
    assert.deepEqual(await world.store.charges(), []);
  }
});

test("a page that stays open looks again before it pays, unless it has just looked", async () => {
  const world = new World();
  let looks = 0;
  const fetch = (address, options) => {
    if (options.method !== "POST") looks++;
    return world.collector.fetch(address, options);
  };
  const client = await world.open({ budget: 2 }, { fetch });
  await client.answer("yes");
  world.time += 300_000;
  await client.answer("yes");
  assert.equal(looks, 1);
  world.time += 1;
  await client.answer("yes");
  assert.equal(looks, 2);
  world.time += 300_001;
  world.collector.end(client.task);
  await assert.rejects(client.answer("no"), refused("survey-closed"));
  assert.equal((await client.account()).left, "1");
  assert.equal(await client.waiting(), 0);
  assert.equal(world.collector.posts.length, 1); // the same answer is delivered
});

test("a closing time that was moved is seen before anything is paid", async () => {
  const world = new World();
  const client = await world.open();
  world.time += 600_000;
  const closes = new Date(world.time - 1_000).toISOString().replace(".000Z", "Z");
  await world.collector.publish(GRR_TASK, { closes });
  await assert.rejects(client.answer("yes"), refused("survey-closed"));
  assert.equal((await client.account()).left, "1");
});

test("a page that stays open answers from its copy when there is no network, however old", async () => {
  const world = new World();
  const client = await world.open();
  world.time += 86_400_000;
  world.collector.answers = ["offline"];
  assert.deepEqual(await client.answer("yes"), { state: "queued" });
  assert.equal((await client.account()).left, "0");
});

test("over plain http nothing is asked or sent, except to this machine", async () => {
  const asked = [];
  const fetch = async (address) => (asked.push(address), new Response("", { status: 404 }));
  const open = (collector) => new World().open({ collector, task: "0".repeat(64) }, { fetch });
  for (const plain of ["http://collector.test", "http://10.0.0.1:8321", "HTTP://localhost.collector.test", "http://[::2]"]) {
    await assert.rejects(open(plain), (error) => refused("collector")(error) && error.message.includes("https"));
  }
  assert.deepEqual(asked, []);
  for (const own of ["http://localhost:8321", "http://127.0.0.9", "http://[::1]:8321", "https://collector.test"]) {
    await assert.rejects(open(own), refused("survey-unknown"));
  }
  assert.equal(asked.length, 4);
});

test("a survey that is not published, and options that make no sense", async () => {
  const world = new World();
  await assert.rejects(world.open({ task: "0".repeat(64) }), refused("survey-unknown"));
  await assert.rejects(world.open({ task: "0" }), refused("task"));
  await assert.rejects(world.open({ collector: "collector" }), refused("collector"));
  await assert.rejects(world.open({ collector: "javascript:alert(1)" }), refused("collector"));
  await assert.rejects(world.open({ collector: "https://me:secret@collector.test" }), refused("collector"));
  const deltas = [1, -0.1, NaN, "0", null].map((delta) => ({ lifetime: 1, delta }));
  for (const budget of [0, -1, NaN, Infinity, "2", null, { lifetime: 1, perDay: 0 }, ...deltas]) {
    await assert.rejects(world.open({ budget }), refused("budget"));
  }
});

test("decimals are the shortest, without exponent", () => {
  for (const [number, text] of [
    [1e-7, "0.0000001"],
    [1.5e-7, "0.00000015"],
    [1e21, "1000000000000000000000"],
    [1.25e22, "12500000000000000000000"],
    [-2.5e-8, "-0.000000025"],
    [0.1, "0.1"],
    [-0, "-0"],
  ]) {
    assert.equal(decimalText(number), text);
    assert.ok(Object.is(decimal(text), number));
  }
  for (const text of ["1.0", "1e0", "+1", "", " 1", "0x1", "Infinity", ".5", "0.1000000000000000055"])
    assert.throws(() => decimal(text));
});

test("values that do not belong are refused without being shown", () => {
  const domains = [
    [{ kind: "categories", labels: ["a", 1], missing: "refuse" }, ["secret", true, null, 2, {}, ["a"]]],
    [{ kind: "categories", size: 3, missing: "refuse" }, [3, -1, 0.5, "1", NaN, undefined]],
    [{ kind: "integers", lo: -2, hi: 2 }, [3, -3, 0.1, "0", null]],
    [{ kind: "interval", lo: "0", hi: "1", cells: 4 }, [-0.1, 1.1, NaN, "0.5", null]],
    [
      { kind: "interval", lo: "0", hi: "86400", cells: 24, unit: "time" },
      [new Date(-1), new Date(86_400_001), new Date(NaN), 3600, 3600n, "1970-01-01T01:00:00Z", null],
    ],
    [{ kind: "bits", bits: 70 }, [-1, 1n << 70n, new Uint8Array(8), "1"]],
    [{ kind: "text", max_bytes: 8 }, [5, "secret\0", "\ud800secret", null]],
    [{ kind: "items", universe: { kind: "integers", lo: 0, hi: 3 } }, ["secret", [4], 3, null]],
    [{ kind: "record", attributes: [["age", { kind: "integers", lo: 0, hi: 9 }]] }, [{}, { age: 10 }, null, "secret"]],
  ];
  for (const [document, values] of domains) {
    const domain = readDomain(document);
    for (const value of values) {
      assert.throws(
        () => domain.encode(value),
        (error) => error.code === "value" && !error.message.includes("secret"),
      );
    }
  }
  assert.equal(readDomain({ kind: "categories", labels: ["caf\u00e9"], missing: "category" }).encode("cafe\u0301"), 0n);
  assert.equal(readDomain({ kind: "categories", labels: ["a"], missing: "category" }).encode(null), 1n);
});

test("a record is answered as a record, and a refusal names the attribute, never the value", () => {
  const age = { kind: "integers", lo: 18, hi: 99 };
  const sex = { kind: "categories", labels: ["f", "m"], missing: "refuse" };
  const person = readDomain({ kind: "record", attributes: [["age", age], ["sex", sex]] });
  assert.deepEqual(person.encode({ sex: "f", age: 30, income: 1e6 }), [12n, 0n]); // others beside are not looked at
  for (const [value, name] of [
    [{ sex: "f" }, "age"],
    [{ agee: 30, sex: "f" }, "age"], // an unknown name is a missing one
    [{ age: 30, sex: null }, "sex"],
    [{ age: 30, sex: "secret" }, "sex"],
    [{ age: "30", sex: "f" }, "age"],
    [{ age: 7654321, sex: "f" }, "age"],
    [Object.create({ age: 30, sex: "f" }), "age"], // what it inherits is not the person's
  ]) {
    assert.throws(
      () => person.encode(value),
      ({ code, message }) => code === "value" && message.startsWith(`attribute "${name}"`) && !/secret|7654321/.test(message),
    );
  }
});

test("numbers and times fall into the cells of their grid, both ends included", () => {
  const hours = readDomain({ kind: "interval", lo: "0", hi: "86400", cells: 24, unit: "time" });
  for (const [time, hour] of [
    ["1970-01-01T00:00:00Z", 0n],
    ["1970-01-01T02:00:00+01:00", 1n],
    ["1970-01-01T01:59:59.999Z", 1n],
    ["1970-01-02T00:00:00Z", 23n],
  ]) {
    assert.equal(hours.encode(new Date(time)), hour);
  }
  const eighths = readDomain({ kind: "interval", lo: "-1", hi: "1", cells: 8 });
  assert.deepEqual([-1, -0.75, 0, 0n, 1].map(eighths.encode), [0n, 1n, 4n, 4n, 7n]);
  assert.throws(() => eighths.encode(new Date(0)), refused("value"));
});

test("labels are in normal form C, and differ", () => {
  for (const labels of [["cafe\u0301", "a"], ["a", "a"], ["a", 1.5], ["a", null], []]) {
    assert.throws(() => readDomain({ kind: "categories", labels, missing: "refuse" }), refused("survey-form"));
  }
});

test("canonical documents only", () => {
  assert.throws(() => parse(encodeText('{"a":"\\ud800"}')));
  assert.throws(() => parse(Uint8Array.of(0x22, 0xff, 0x22)));
  assert.throws(() => parse(encodeText("9007199254740992")));
  assert.deepEqual(parse(encodeText('{"__proto__":1,"a":[]}')), JSON.parse('{"__proto__":1,"a":[]}'));
});
