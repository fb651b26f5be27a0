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
  underWay = 0; // calls of clients to the world that have not returned

  environment(changes = {}) {
    const environment = {
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
    for (const name of ["fetch", "alone"]) environment[name] = this.#watched(environment[name]);
    const { open } = environment;
    environment.open = async (name) => this.#watchedStore(await open(name));
    return environment;
  }

  #watched(call) {
    return async (...given) => {
      this.underWay++;
      try {
        return await call(...given);
      } finally {
        this.underWay--;
      }
    };
  }

  #watchedStore(store) {
    return new Proxy(store, {
      get: (_, name) => {
        const member = store[name];
        if (typeof member !== "function") return member;
        return name === "close" ? member.bind(store) : this.#watched(member.bind(store));
      },
    });
  }

  async open(options = {}, changes = {}) {
    const asked = options.name === undefined ? { task: options.task ?? (await this.collector.publish(GRR_TASK)) } : {};
    const given = { collector: this.collector.address, key: this.collector.key, ...asked, budget: 1, ...options };
    const client = await openClient(given, this.environment(changes));
    await this.settle();
    return client;
  }

  // Lets time pass, and the timers that are due run.
  async pass(milliseconds) {
    this.time += milliseconds;
    const due = this.timers.filter(({ at }) => at <= this.time);
    this.timers = this.timers.filter(({ at }) => at > this.time);
    for (const { run } of due) run();
    await this.settle();
  }

  async comeOnline() {
    for (const run of this.listeners) run();
    await this.settle();
  }

  // Returns once no client has anything under way: what they do by themselves is done, however slow the machine.
  async settle() {
    do await new Promise(setImmediate);
    while (this.underWay);
  }
}
