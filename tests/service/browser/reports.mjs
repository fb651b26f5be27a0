// What the browser client's modules make of given tasks, values and entropy: one line of JSON for each line of a file.
//
//     node reports.mjs cases.jsonl
//
// A line is {"task": text} or {"task": text, "value": ..., "entropy": hex}; integers from 2^53 on come as
// {"big": text}, times as {"time": text}. Prints the code of the error, or the report (or the task id) in hex. With a
// "life", a list of [value, occasion, entropy], it prints all reports of one person, joined by spaces.

import { readFileSync } from "node:fs";

import { encodeText, hex } from "../../../clients/js/build/bytes.js";
import { parse } from "../../../clients/js/build/canonical.js";
import { VeilError } from "../../../clients/js/build/errors.js";
import { lastingReport } from "../../../clients/js/build/lasting.js";
import { Survey } from "../../../clients/js/build/survey.js";
import { unhex, wordsOf } from "../../../clients/js/test/vectors.mjs";

const held = (value) => {
  if (typeof value !== "object" || value === null) return value;
  if (Object.hasOwn(value, "big")) return BigInt(value.big);
  if (Object.hasOwn(value, "time")) return new Date(value.time);
  if (Array.isArray(value)) return value.map(held);
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, held(part)]));
};

async function reportsOf(survey, life) {
  const [kept, sent] = [new Map(), []];
  const known = { kept: (mark) => kept.get(mark) };
  for (const [value, occasion, entropy] of life) {
    const own = JSON.stringify(value);
    const marks = { person: "person", value: own, occasion: `${own} ${occasion}` };
    const words = wordsOf(unhex(entropy));
    const { report, fresh } = await lastingReport(survey, survey.domain.encode(held(value)), [], marks, known, words);
    for (const [mark, bytes] of fresh) kept.set(mark, bytes);
    sent.push(hex(report));
  }
  return sent.join(" ");
}

async function outcome({ task, value, entropy, life }) {
  try {
    const survey = await Survey.read(parse(encodeText(task)));
    if (life !== undefined) return await reportsOf(survey, life);
    if (entropy === undefined) return survey.task;
    return hex(await survey.report(survey.domain.encode(held(value)), [], wordsOf(unhex(entropy))));
  } catch (problem) {
    return problem instanceof VeilError ? problem.code : `UNFORESEEN ${problem.stack}`;
  }
}

for (const line of readFileSync(process.argv[2], "utf8").trimEnd().split("\n")) {
  console.log(JSON.stringify(await outcome(JSON.parse(line))));
}
