// Chromium and a collector that wants to hang or fill it.
//
//     node hostile.mjs '{"address": ..., "page": ..., "chromium": ..., "profile": folder, "gets": [...], "posts": [...]}'
//
// Prints the page's states, as JSON: the Python test says what they should have been.

import { createRequire } from "node:module";

const { address, page: address_, chromium: executablePath, profile, gets, posts } = JSON.parse(process.argv[2]);
const root = new URL("../../../", import.meta.url);
const { chromium } = createRequire(new URL("clients/js/package.json", root))("playwright-core");

const PATIENCE = 240_000; // milliseconds: only a hang takes so long
const attack = (method, name) => fetch(`${address}/attack/${method}/${name}`);
const context = await chromium.launchPersistentContext(profile, {
  executablePath,
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"],
  timeout: PATIENCE,
});
context.setDefaultTimeout(PATIENCE);
const page = await context.newPage();
const state = async () => {
  await page.waitForFunction(() => !["loading", "sending"].includes(document.querySelector("#status").dataset.state));
  return page.locator("#status").getAttribute("data-state");
};

const seen = { gets: {}, posts: {} };
for (const name of gets) {
  await attack("GET", name);
  await page.goto(address_);
  seen.gets[name] = await state();
}
await attack("GET", "none");
await page.goto(address_);
seen.opened = await state();
for (const name of posts) {
  await attack("POST", name);
  await page.getByLabel("tea").check();
  await page.getByRole("button", { name: "Answer" }).click();
  seen.posts[name] = await state();
}
await attack("POST", "none");
await page.getByLabel("tea").check();
await page.getByRole("button", { name: "Answer" }).click();
seen.last = await state();
await context.close();
console.log(JSON.stringify(seen));
