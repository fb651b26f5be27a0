// A collector in a few lines, for tests: publishes signed surveys and takes reports, each counted once.

import { createPublicKey, generateKeyPairSync, sign } from "node:crypto";

import { encodeText, hex, toBase64url } from "../build/bytes.js";
import { canonical, digest } from "../build/canonical.js";

export const GRR_TASK = {
  ask: {
    kind: "question",
    mechanism: { epsilon: "1", kind: "GRR", thresholds: { stay: "bb26a7aead15e6ca" } },
    view: { kind: "identity" },
  },
  domain: { kind: "categories", labels: ["no", "yes"], missing: "refuse" },
  kind: "veil-survey",
  public: [],
  version: 1,
};

export class Collector {
  address = "https://collector.test";
  reports = new Map(); // by report id, in hex
  posts = []; // every body that arrived, in hex, acknowledged or not
  validUntil = "2026-03-02T00:00:00Z"; // of statements that are signed from now on
  answers = []; // what to answer instead, in turn: a status, [status, headers], or "lost" after storing, or "offline"
  #keys = generateKeyPairSync("ed25519");
  #surveys = new Map();
  #waves = new Map(); // task ids by name, the first wave first
  #ended = new Map(); // why, by task

  get key() {
    const der = createPublicKey(this.#keys.privateKey).export({ format: "der", type: "spki" });
    return toBase64url(new Uint8Array(der.subarray(-32)));
  }

  sign(document, purpose = "veil-published-survey-v1") {
    const bytes = typeof document === "string" ? encodeText(document) : document;
    const message = Buffer.concat([Buffer.from(`${purpose}\0`, "latin1"), bytes]);
    return toBase64url(new Uint8Array(sign(null, message, this.#keys.privateKey)));
  }

  envelope(document, purpose) {
    const text = typeof document === "string" ? document : canonical(document);
    return { document: toBase64url(encodeText(text)), key: this.key, signature: this.sign(text, purpose) };
  }

  // What is said about a survey, signed.
  about(document) {
    const whole = { kind: "veil-survey-about", texts: {}, valid_until: this.validUntil, version: 1, wave: 1, ...document };
    return this.envelope(whole, "veil-survey-about-v1");
  }

  // The next wave of a name.
  async publishWave(name, survey, texts = {}) {
    const task = await this.publish(survey);
    const waves = [...(this.#waves.get(name) ?? []), task];
    this.#waves.set(name, waves);
    this.replace(task, { ...this.published(task), about: this.about({ name, task, texts, wave: waves.length }) });
    return task;
  }

  published(task) {
    return this.#surveys.get(task);
  }

  async publish(survey, changes = {}) {
    const document = {
      closes: null,
      kind: "veil-published-survey",
      opens: null,
      precision: 3600,
      version: 1,
      ...changes,
      survey,
    };
    const task = await digest(survey);
    this.#surveys.set(task, this.envelope(document));
    return task;
  }

  // From now on the survey is over: nobody may read it, and no report is taken.
  end(task, code = "survey-closed") {
    this.#ended.set(task, code);
  }

  replace(task, envelope) {
    this.#surveys.set(task, envelope);
  }

  // What the collector answers: [status, headers, body].
  handle(method, path, body) {
    const waves = this.#waves.get(/^\/v1\/surveys\/by-name\/([^/]+)$/.exec(path)?.[1]);
    const latest = waves?.findLast((wave) => !this.#ended.has(wave)) ?? waves?.at(-1);
    const direct = latest === undefined ? path : `/v1/surveys/${latest}`;
    const [, task, reports] = /^\/v1\/surveys\/([0-9a-f]{64})(\/reports)?$/.exec(direct) ?? [];
    const envelope = this.#surveys.get(task);
    const error = (status, code) => [status, {}, { error: { code, message: `refused: ${code}` } }];
    if (envelope === undefined) return error(404, "unknown_survey");
    if (method === "POST" && this.#ended.has(task)) this.posts.push(hex(body));
    if (this.#ended.has(task)) return error(410, this.#ended.get(task));
    if (method === "GET" && !reports) return [200, {}, envelope];
    if (method !== "POST") return error(405, "method");
    this.posts.push(hex(body));
    if (body.length < 50 || hex(body.subarray(1, 33)) !== task) return error(422, "foreign_report");
    const answer = this.answers.shift();
    if (answer === undefined || answer === "lost") this.reports.set(hex(body.subarray(33, 49)), hex(body));
    if (answer === undefined) return [200, {}, { acknowledged: 1 }];
    if (answer === "lost") throw new TypeError("the connection broke after the report was stored");
    const [status, headers] = Array.isArray(answer) ? answer : [answer, {}];
    return [status, headers, error(status, "told_to")[2]];
  }

  // The `fetch` of a device that reaches this collector and nothing else.
  fetch = async (address, options = {}) => {
    if (this.answers[0] === "offline" || !address.startsWith(this.address)) throw new TypeError("no network");
    const [status, headers, body] = this.handle(
      options.method ?? "GET",
      address.slice(this.address.length),
      options.body,
    );
    return new Response(JSON.stringify(body), { status, headers });
  };
}
