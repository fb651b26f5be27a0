// What a client needs from the world around it. Tests bring their own; a page has no way to.

import { openDatabase } from "./database.js";
import type { Store } from "./store.js";
import type { Fill } from "./words.js";

export interface Environment {
  readonly fill: Fill;
  now(): number;
  fetch(address: string, options?: RequestInit): Promise<Response>;
  open(name: string): Promise<Store>;
  alone<Result>(name: string, run: () => Promise<Result>): Promise<Result>; // one tab at a time
  later(run: () => void, milliseconds: number): () => void; // returns how to call it off
  online(run: () => void): () => void; // when the network returns
}

export const browser: Environment = {
  fill: (buffer) => void crypto.getRandomValues(buffer),
  now: () => Date.now(),
  fetch: (address, options) => fetch(address, options),
  open: (name) => openDatabase(globalThis.indexedDB, name),
  // Without locks two tabs may send the same report: the collector counts it once, by its id.
  alone: async (name, run) => (globalThis.navigator?.locks ? await navigator.locks.request(name, run) : run()),
  later(run, milliseconds) {
    const timer = setTimeout(run, milliseconds);
    return () => clearTimeout(timer);
  },
  online(run) {
    globalThis.addEventListener?.("online", run);
    return () => globalThis.removeEventListener?.("online", run);
  },
};
