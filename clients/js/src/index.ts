// The browser client of veil. A page needs two calls:
//
//     const client = await Client.open({ collector, key, task, budget: 2 });
//     await client.answer("coffee");

import { openClient } from "./client.js";
import type { Client as Device, Options } from "./client.js";
import { browser } from "./environment.js";

export type { Account, Options, Receipt } from "./client.js";
export type { Budget, Caps } from "./ledger.js";
export type { Terms } from "./promise.js";
export type { Refusal } from "./store.js";
export { BudgetError, CollectorError, DomainError, StorageError, SurveyError, VeilError } from "./errors.js";

/** Answers one survey for the person at this device. */
export type Client = Device;

export const Client = {
  /** Fetches the survey, and refuses it unless its signature, its promise and its times are right. */
  open: (options: Options): Promise<Client> => openClient(options, browser),
};
