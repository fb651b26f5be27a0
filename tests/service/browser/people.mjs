// Many people report: one report for each value, by the browser client's modules, from entropy that a seed gives.
//
//     node people.mjs '{"task": file, "values": file, "seed": 1, "address": "http://..."}'
//
// Posts them to a collector in batches of 500, and prints how many were acknowledged.

import { createCipheriv, createHash } from "node:crypto";
import { readFileSync } from "node:fs";

import { Survey } from "../../../clients/js/build/survey.js";
import { Words } from "../../../clients/js/build/words.js";

const BATCH = 500;
const { task, values, seed, address } = JSON.parse(process.argv[2]);
const survey = await Survey.read(JSON.parse(readFileSync(task, "utf8")));

// AES-256-CTR, keyed by the seed: the same reports every time.
const stream = createCipheriv("aes-256-ctr", createHash("sha256").update(`people ${seed}`).digest(), Buffer.alloc(16));
const words = new Words((buffer) => buffer.set(stream.update(Buffer.alloc(buffer.length))), 4096);

let acknowledged = 0;
const people = JSON.parse(readFileSync(values, "utf8"));
for (let start = 0; start < people.length; start += BATCH) {
  const reports = [];
  for (const value of people.slice(start, start + BATCH)) {
    reports.push(await survey.report(survey.domain.encode(value), [], words));
  }
  const response = await fetch(`${address}/v1/surveys/${survey.task}/reports`, {
    method: "POST",
    headers: { "Content-Type": "application/vnd.veil.reports" },
    body: Buffer.concat(reports),
  });
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  acknowledged += (await response.json()).acknowledged;
}
console.log(JSON.stringify({ acknowledged }));
