// A page that asks one question. `npm run build` in clients/js puts `veil.js` and `statements.js` into dist.

import { Client } from "./veil.js";
import { statements } from "./statements.js";
import { budget, collector, key, survey } from "./settings.js";

const find = (id) => document.getElementById(id);
const form = find("survey");
const fieldset = form.querySelector("fieldset");

// What to say to the person. Everything else that may happen is said in the words of the error.
const SAID = {
  ready: "Choose an answer.",
  sending: "Sending.",
  delivered: "Thank you. Your answer has arrived, behind its veil.",
  queued: "Thank you. The collector cannot be reached now: your answer is kept on this device, and sent later.",
  earlier: "You have answered before, and that answer has arrived. What it was is forgotten here; nothing was sent now.",
  budget: "Nothing was sent: this answer would tell more about you than you have allowed.",
};

function say(state, text = SAID[state]) {
  find("status").dataset.state = state;
  find("status").textContent = text;
}

// The answers that the survey takes: its labels, or its numbers from 0.
function labelsOf(domain) {
  return domain.labels ?? Array.from({ length: domain.size }, (_, number) => number);
}

// What is asked, in the language that the person reads best, and which time this is.
function drawQuestion(client) {
  find("question").textContent = client.text(...navigator.languages) ?? "What is your answer?";
  find("wave").textContent = client.wave === null || !survey.name ? "" : `${survey.name}, wave ${client.wave}`;
}

function drawAnswers(domain) {
  find("answers").replaceChildren(
    ...labelsOf(domain).map((text, index) => {
      const input = Object.assign(document.createElement("input"), {
        type: "radio",
        name: "answer",
        value: index,
        required: true,
      });
      const label = document.createElement("label");
      label.append(input, ` ${text}`);
      return label;
    }),
  );
}

// What an answer tells, and what becomes of it: made from the signed survey.
function drawStatements(client) {
  const items = Object.entries(statements(client.terms)).map(([topic, text]) => {
    const item = document.createElement("li");
    item.dataset.topic = topic;
    item.textContent = text;
    return item;
  });
  find("statements").replaceChildren(...items);
}

async function showAccount(client) {
  const { cost, left } = await client.account();
  find("cost").textContent = cost;
  find("left").textContent = left;
}

try {
  const client = await Client.open({ collector, key, ...survey, budget });
  drawQuestion(client);
  drawAnswers(client.domain);
  drawStatements(client);
  await showAccount(client);
  fieldset.disabled = false;
  say("ready");

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const chosen = labelsOf(client.domain)[new FormData(form).get("answer")];
    fieldset.disabled = true;
    say("sending");
    try {
      const { state, reason, earlier } = await client.answer(chosen, {}, undefined, event.submitter === find("change"));
      find("change").hidden = !earlier; // to change an answer is one more report, at the same cost
      say(earlier && state === "delivered" ? "earlier" : state, reason ? `The collector did not take this answer: ${reason.message}` : undefined);
    } catch (problem) {
      say(problem.code ?? "failed", SAID[problem.code] ?? problem.message);
    }
    await showAccount(client);
    fieldset.disabled = false;
  });
} catch (problem) {
  say(problem.code ?? "failed", `This survey cannot be answered: ${problem.message}`);
}
