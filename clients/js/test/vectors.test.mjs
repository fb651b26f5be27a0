// The shipped modules reproduce the shared vectors.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { reproduce } from "./vectors.mjs";

test("every vector, byte for byte", async () => {
  const failures = [];
  const folder = fileURLToPath(new URL("../../../vectors", import.meta.url));
  const passed = await reproduce(folder, (...failure) => failures.push(failure));
  assert.deepEqual(failures, []);
  assert.ok(passed >= 1100, `only ${passed} checks`);
});
