// The world around a client in a test: a clock that stands, timers that are turned by hand, entropy that can be given.

import { webcrypto } from "node:crypto";

import { openClient } from "../build/client.js";
import { MemoryStore } from "../build/memory.js";
import { Collector, GRR_TASK } from "./collector.mjs";

export class World {
  time = Date.UTC(2026, 0, 31, 12);
  timers = [];
  listeners = new Set();
  store = new MemoryStore();
  collector = new Collector();

  environment(changes = {}) {
    return {
      fill: (buffer) => void webcrypto.getRandomValues(buffer),
      now: () => this.time,
      fetch: this.collector.fetch,
      open: async () => this.store,
      alone: (_, run) => (this.turn = (this.turn ?? Promise.resolve()).then(run, run)),
      later: (run, wait) => {
        const timer = { run, at: this.time + wait };
        this.timers.push(timer);
        return () => void (this.timers = this.timers.filter((other) => other !== timer));
      },
      online: (run) => {
        this.listeners.add(run);
        return () => this.listeners.delete(run);
      },
      ...changes,
    };
  }

  async open(options = {}, changes = {}) {
    const task = options.task ?? (await this.collector.publish(GRR_TASK));
    const given = { collector: this.collector.address, key: this.collector.key, task, budget: 1, ...options };
    const client = await openClient(given, this.environment(changes));
    await settle();
    return client;
  }

  // Lets time pass, and the timers that are due run.
  async pass(milliseconds) {
    this.time += milliseconds;
    const due = this.timers.filter(({ at }) => at <= this.time);
    this.timers = this.timers.filter(({ at }) => at > this.time);
    for (const { run } of due) run();
    await settle();
  }

  async comeOnline() {
    for (const run of this.listeners) run();
    await settle();
  }
}

export const settle = async () => {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setTimeout(resolve, 1));
};
