// A page's own code, in strict TypeScript, against the shipped types. It is compiled by a test, never run.

import { BudgetError, Client, VeilError } from "../dist/index.js";
import type { Account, Options, Receipt } from "../dist/index.js";

const options: Options = {
  collector: "https://collector.example",
  key: ["key"],
  task: "task",
  budget: { lifetime: 2, perDay: 1, delta: 1e-6 },
};

export async function ask(value: string): Promise<string> {
  const client: Client = await Client.open(options);
  const { cost, left }: Account = await client.account();
  try {
    const receipt: Receipt = await client.answer(value, { region: 7 });
    if (receipt.state === "refused") return receipt.reason.message;
    return `${receipt.state}, ${cost} of ${left}, ${await client.waiting()} waiting`;
  } catch (problem) {
    if (problem instanceof BudgetError) return problem.message;
    if (problem instanceof VeilError) return problem.code;
    throw problem;
  } finally {
    client.close();
  }
}

export async function askByName(): Promise<string> {
  const client: Client = await Client.open({ collector: "", key: "", name: "drinks", budget: 1 });
  const [wave, text]: [number | null, string | null] = [client.wave, client.text("de-CH", "en")];
  return `${wave ?? "no wave"}: ${text ?? "no text"}`;
}

// @ts-expect-error: a task or a name, and not both
void Client.open({ ...options, task: "task", name: "drinks" });
// @ts-expect-error: a task or a name
void Client.open({ collector: "", key: "", budget: 1 });
// @ts-expect-error: a budget is needed
void Client.open({ collector: "", key: "", task: "" });
// @ts-expect-error: no seam for entropy
void Client.open({ ...options, budget: 1 }, { fill: () => undefined });
