// A person at a real browser: answers the example page, tries to spend twice, loses the network, opens two tabs,
// and loses the browser itself.
//
//     node survey.mjs '{"address": ..., "key": ..., "task": ..., "name": ..., "token": ..., "chromium": ..., "profile": folder, "shown": [...]}'
//
// Prints what was seen, as JSON: the Python test says what it should have been.

import { spawn } from "node:child_process";
import { readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";

const { address, key, task, name: survey, token, chromium: executablePath, profile, shown } = JSON.parse(process.argv[2]);
const root = new URL("../../../", import.meta.url);
const { chromium } = createRequire(new URL("clients/js/package.json", root))("playwright-core");

const settings = `
export const collector = ${JSON.stringify(address)};
export const key = ${JSON.stringify(key)};
export const survey = { name: ${JSON.stringify(survey)} };
export const budget = 1;
`;
const TYPES = { html: "text/html", js: "text/javascript", css: "text/css" };

// The example page, on an origin of its own; only its settings are the test's.
const server = createServer(async (request, response) => {
  const name = request.url === "/" ? "index.html" : request.url.slice(1);
  const file = ["veil.js", "statements.js"].includes(name) ? `clients/js/dist/${name}` : `examples/survey-page/${name}`;
  try {
    const body = name === "settings.js" ? settings : await readFile(new URL(file, root));
    response.writeHead(200, { "Content-Type": TYPES[name.split(".").pop()] }).end(body);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const page_ = `http://127.0.0.1:${server.address().port}/`;

const PATIENCE = 240_000; // milliseconds: only a hang takes so long, a slow machine is not a bug
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const launch = (folder, locale = "en-US") =>
  chromium.launchPersistentContext(`${profile}/${folder}`, {
    locale,
    executablePath,
    headless: true,
    args: FLAGS,
    timeout: PATIENCE,
  });

// A browser that we hold by its process id, so that it can be killed. Started on a busy machine, one in some dozens
// dies or never answers: it is started once more, before anybody has used it.
async function launchToKill(folder) {
  const home = `${profile}/${folder}`;
  for (const end = Date.now() + PATIENCE; Date.now() < end; ) {
    await rm(home, { recursive: true, force: true });
    const process_ = spawn(
      executablePath,
      [...FLAGS, "--headless", "--remote-debugging-port=0", `--user-data-dir=${home}`],
      { stdio: "ignore" },
    );
    for (const soon = Date.now() + PATIENCE / 6; Date.now() < soon && process_.exitCode === null; ) {
      const port = (await readFile(`${home}/DevToolsActivePort`, "utf8").catch(() => "")).split("\n")[0];
      const address = `http://127.0.0.1:${port}`;
      const browser = port && (await chromium.connectOverCDP(address, { timeout: PATIENCE / 12 }).catch(() => null));
      if (browser) return { context: browser.contexts()[0], process_ };
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const gone = process_.exitCode === null && new Promise((resolve) => process_.once("exit", resolve));
    process_.kill("SIGKILL");
    await gone;
  }
  throw new Error("the browser does not start");
}

// How many reports the collector counts, and what it estimates.
async function counted() {
  const ask = async (path) =>
    (await fetch(`${address}/v1/surveys/${task}/${path}`, { headers: { Authorization: token } })).json();
  const { rows: values } = await ask("answer");
  return { reports: (await ask("state")).reports, estimate: values?.map(({ frequency }) => frequency) ?? null };
}

const stateOf = (page, ...states) =>
  page.waitForFunction((wanted) => wanted.includes(document.querySelector("#status").dataset.state), states, {
    timeout: PATIENCE,
  });

// Opens the page, and counts what it posts.
async function visit(context) {
  const page = await context.newPage();
  const posts = [];
  page.on("request", (request) => request.method() === "POST" && posts.push(request.postDataBuffer()?.toString("hex")));
  const acknowledged = page.waitForResponse((response) => response.request().method() === "POST" && response.ok());
  acknowledged.catch(() => undefined); // not every visit posts
  await page.goto(page_);
  return { page, posts, acknowledged };
}

async function answer(page, label, button = "Answer") {
  await page.getByLabel(label).check();
  await page.getByRole("button", { name: button }).click();
  await stateOf(page, "delivered", "earlier", "queued", "refused", "budget", "storage", "failed");
  return page.locator("#status").getAttribute("data-state");
}

const seen = { problems: [] };
const watch = (context) => {
  context.setDefaultTimeout(PATIENCE);
  context.on("weberror", (error) => seen.problems.push(String(error.error())));
};

const CHANGE = "I have changed my mind";

// 1. A person answers; the report arrives. After that the device cannot tell another answer from the same; a changed one
// is refused by the ledger.
let context = await launch("first");
watch(context);
{
  const { page, posts } = await visit(context);
  await stateOf(page, "ready");
  seen.labels = (await page.locator("label").allInnerTexts()).map((text) => text.trim());
  seen.question = await page.locator("#question").textContent();
  seen.wave = await page.locator("#wave").textContent();
  seen.cost = await page.locator("#cost").textContent();
  seen.before = await counted();
  seen.first = await answer(page, "coffee");
  seen.afterFirst = await counted();
  seen.same = await answer(page, "coffee");
  seen.other = await answer(page, "tea");
  seen.changed = await answer(page, "tea", CHANGE);
  seen.posts = posts;
  seen.left = await page.locator("#left").textContent();
  seen.afterChanged = await counted();
}
await context.close();

// 2. The browser is started again: the ledger is still there.
context = await launch("first");
watch(context);
{
  const { page, posts } = await visit(context);
  await stateOf(page, "ready");
  seen.restarted = await answer(page, "water");
  seen.restartedChanged = await answer(page, "water", CHANGE);
  seen.restartedPosts = posts.length;
}
await context.close();

// 3. Another person loses the network, answers, and gets it back: delivered, once.
context = await launch("second", "de-CH");
watch(context);
{
  const { page, posts, acknowledged } = await visit(context);
  await stateOf(page, "ready");
  seen.asked = await page.locator("#question").textContent();
  await context.setOffline(true);
  seen.offline = await answer(page, "tea");
  seen.whileOffline = (await counted()).reports;
  await context.setOffline(false);
  await acknowledged;
  await page.waitForTimeout(2_500); // time for a second delivery, if there were to be one
  seen.delivered = new Set(posts).size;
  seen.afterOffline = (await counted()).reports;
}
await context.close();

// 4. A third person has two tabs, which answer at the same time: one budget, one report.
context = await launch("third");
watch(context);
{
  const tabs = [(await visit(context)).page, (await visit(context)).page];
  await Promise.all(tabs.map((tab) => stateOf(tab, "ready")));
  seen.tabs = await Promise.all([answer(tabs[0], "tea"), answer(tabs[1], "coffee")]);
  seen.afterTabs = (await counted()).reports;
}

// 5. Somebody on the way alters the survey: the page refuses to ask.
{
  const page = await context.newPage();
  await page.route(`${address}/v1/surveys/by-name/${survey}`, async (route) => {
    const response = await route.fetch();
    const envelope = await response.json();
    const document = Buffer.from(envelope.document, "base64url")
      .toString()
      .replace('"precision":3600', '"precision":1');
    await route.fulfill({ response, json: { ...envelope, document: Buffer.from(document).toString("base64url") } });
  });
  await page.goto(page_);
  await stateOf(page, "survey-signature", "ready");
  seen.altered = await page.locator("#status").getAttribute("data-state");
}

// 5b. Somebody shows the same person surveys that the collector signed at other times.
seen.old = [];
for (const json of shown) {
  const page = await context.newPage();
  await page.route(`${address}/v1/surveys/by-name/${survey}`, (route) =>
    route.fulfill({ headers: { "Access-Control-Allow-Origin": "*" }, json }),
  );
  await page.goto(page_);
  await stateOf(page, "ready", "survey-rollback", "survey-outdated");
  seen.old.push(await page.locator("#status").getAttribute("data-state"));
  await page.close();
}
await context.close();

// 6. A fourth person's browser is killed at the moment when the report leaves the page: it is paid for, and arrives later.
{
  const { context: doomed, process_ } = await launchToKill("fourth");
  doomed.setDefaultTimeout(PATIENCE);
  const { page } = await visit(doomed);
  const gone = new Promise((resolve) => process_.once("exit", resolve));
  await page.route("**/reports", () => process_.kill("SIGKILL"));
  await stateOf(page, "ready");
  await page.getByLabel("water").check();
  await page.getByRole("button", { name: "Answer" }).click();
  await gone;
  seen.whileKilled = (await counted()).reports;
}
context = await launch("fourth");
watch(context);
{
  const { page, acknowledged } = await visit(context);
  await acknowledged;
  await stateOf(page, "ready");
  seen.afterKill = (await counted()).reports;
  seen.leftAfterKill = await page.locator("#left").textContent();
  seen.otherAfterKill = await answer(page, "tea");
  seen.changedAfterKill = await answer(page, "tea", CHANGE);
}
await context.close();
server.close();
console.log(JSON.stringify(seen));
