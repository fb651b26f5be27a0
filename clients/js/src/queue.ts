// Reports on their way: kept until the collector acknowledges them, sent again with the same bytes and so the same id.
//
// What the collector may take later (no network, 408, 429, 5xx) is tried again, at growing intervals and not before its
// Retry-After. A survey that is not open yet (409) makes its own reports wait until it opens, and no others. What the
// collector will never take (any other 4xx) is not tried again; its reason is kept. In the same step as a report goes, the
// ledger forgets what recognises and repeats its answer.

import type { Environment } from "./environment.js";
import { forgetting } from "./ledger.js";
import { exchange, isPassing } from "./requests.js";
import type { Parcel, Refusal, Store } from "./store.js";

const FIRST = 1_000; // milliseconds before the second attempt; then twice as long each time
const LONGEST = 300_000;
const DAY = 86_400_000;

type Outcome =
  | { state: "delivered" }
  | { state: "refused"; refusal: Refusal }
  | { state: "later"; heldUntil: number }
  | { state: "early"; opens: number };

export class Queue {
  #stop: (() => void) | null = null;
  #closed = false;
  readonly #deaf: () => void;

  constructor(
    private readonly environment: Environment,
    private readonly store: Store,
    private readonly collector: string,
    private readonly opensOf: (task: string) => Promise<number>,
  ) {
    this.#deaf = environment.online(() => void this.deliver(true).catch(() => undefined));
  }

  // Sends what is due; with `eager`, also what is only waiting for us. Returns once nothing more can be done now.
  async deliver(eager = false): Promise<void> {
    if (this.#closed) return;
    await this.environment.alone(`veil ${this.collector}`, async () => {
      const waiting = await this.#waiting();
      if (heldUntil(waiting) > this.environment.now()) return;
      for (const parcel of waiting) {
        const now = this.environment.now();
        if (this.#closed || (parcel.opens ?? 0) > now || (!eager && parcel.notBefore > now)) continue;
        if ((await this.#attempt(parcel)) === "later") break; // the next one would fare no better
      }
    });
    await this.#schedule();
  }

  close(): void {
    this.#closed = true;
    this.#stop?.();
    this.#deaf();
  }

  async #waiting(): Promise<Parcel[]> {
    const latest = this.environment.now() + DAY; // a clock that was set back must not hold a report for years
    return (await this.store.parcels())
      .filter(({ collector, refusal }) => collector === this.collector && refusal === null)
      .map((parcel) => ({
        ...parcel,
        notBefore: parcel.notBefore > latest ? 0 : parcel.notBefore,
        heldUntil: parcel.heldUntil > latest ? 0 : parcel.heldUntil,
      }))
      .sort((a, b) => a.attempts - b.attempts); // one that fails again and again must not stand before the others
  }

  async #attempt(parcel: Parcel): Promise<Outcome["state"]> {
    const outcome = await this.#post(parcel);
    const { id, task, report } = parcel;
    if (outcome.state === "delivered") await this.store.forget(forgetting(task, report), id);
    if (outcome.state === "refused") {
      const { refusal } = outcome;
      const change = forgetting(task, refusal.status === 410 ? undefined : report); // 410: the survey is closed
      await this.store.forget(change, id, { ...parcel, report: new Uint8Array(), attempts: 0, notBefore: 0, heldUntil: 0, refusal });
    }
    if (outcome.state === "later" || outcome.state === "early") {
      const wait = Math.min(FIRST * 2 ** parcel.attempts, LONGEST) * (0.5 + this.#uniform());
      const held = outcome.state === "early" ? { opens: outcome.opens } : { heldUntil: outcome.heldUntil };
      const notBefore = Math.max(this.environment.now(), held.opens ?? 0) + wait;
      await this.store.update({ ...parcel, attempts: parcel.attempts + 1, notBefore, ...held });
    }
    return outcome.state;
  }

  // So that devices that lost the same collector do not all come back in the same second.
  #uniform(): number {
    const byte = new Uint8Array(1);
    this.environment.fill(byte);
    return (byte[0] as number) / 256;
  }

  async #post({ task, report }: Parcel): Promise<Outcome> {
    const later: Outcome = { state: "later", heldUntil: 0 };
    const answer = await exchange(this.environment.fetch, `${this.collector}/v1/surveys/${task}/reports`, report);
    if (answer === null) return later;
    const { status } = answer;
    const body = answer.body as Said;
    if (status === 200 && body?.acknowledged === 1) return { state: "delivered" };
    const wished = this.#retryAfter(answer.retryAfter);
    if (status === 409) return { state: "early", opens: Math.max(wished, await this.opensOf(task)) };
    if (status >= 400 && !isPassing(status)) {
      const { code, message } = body?.error ?? {};
      return { state: "refused", refusal: { status, code: textOf(code, 100, `${status}`), message: textOf(message, 500, "") } };
    }
    return { ...later, heldUntil: wished };
  }

  #retryAfter(header: string | null): number {
    if (header === null) return 0;
    const now = this.environment.now();
    const until = /^\d+$/.test(header) ? now + 1_000 * Number(header) : Date.parse(header);
    return Number.isNaN(until) ? 0 : Math.min(until, now + DAY);
  }

  async #schedule(): Promise<void> {
    const waiting = await this.#waiting();
    this.#stop?.();
    if (!waiting.length || this.#closed) return;
    const due = Math.min(...waiting.map(({ notBefore, opens }) => Math.max(notBefore, opens ?? 0)));
    const wait = Math.max(Math.max(heldUntil(waiting), due) - this.environment.now(), FIRST / 2);
    this.#stop = this.environment.later(() => void this.deliver().catch(() => undefined), Math.min(wait, DAY));
  }
}

// The collector's wish concerns all reports, whichever it was said about.
const heldUntil = (parcels: Parcel[]): number => Math.max(0, ...parcels.map((parcel) => parcel.heldUntil));

// Anything may stand where text is expected, also what no text can be made of.
const textOf = (found: unknown, most: number, otherwise: string): string =>
  typeof found === "string" ? found.slice(0, most) : otherwise;

type Said = { acknowledged?: unknown; error?: { code?: unknown; message?: unknown } } | null;
