// How long the browser client takes to read a task and to draw one report from it: milliseconds of the quickest turn.
//
//     node family_times.mjs task.json
//
// The held value is 1 for every attribute.

import { readFileSync } from "node:fs";

import { parse } from "../../../clients/js/build/canonical.js";
import { Survey } from "../../../clients/js/build/survey.js";
import { Words } from "../../../clients/js/build/words.js";

const bytes = new Uint8Array(readFileSync(process.argv[2]));

async function quickest(turns, work) {
  let least = Infinity;
  for (let turn = 0; turn < turns; turn++) {
    const start = performance.now();
    await work();
    least = Math.min(least, performance.now() - start);
  }
  return least;
}

const first = performance.now();
const survey = await Survey.read(parse(bytes));
const cold = performance.now() - first;
const warm = await quickest(10, async () => Survey.read(parse(bytes)));
const value = Object.fromEntries(survey.domain.attributes.map(([name]) => [name, 1]));
const drawn = await quickest(100, async () =>
  survey.report(survey.domain.encode(value), [], new Words((buffer) => crypto.getRandomValues(buffer))),
);
console.log(process.argv[3] === "cold" ? cold : warm, drawn);
