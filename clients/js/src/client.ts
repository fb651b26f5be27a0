// One person's device: it checks the survey, pays, randomizes, remembers, and delivers.
//
// The same answer to the same survey is sent again as the very same bytes, at no cost: the collector counts it once, by
// its report id. A changed answer is a new report and is paid for again, or refused by the budget. Once an answer is
// delivered, the device forgets what recognises it: then only an answer that the page calls changed is drawn and paid. Where the mechanism
// is longitudinal, what is paid for is the permanent step of a value, and the same answer is a fresh report on every new
// occasion: each day, unless the page names occasions (lasting.ts).

import { bestText, isName } from "./about.js";
import { encodeText, hex, sha256 } from "./bytes.js";
import { canonical } from "./canonical.js";
import type { Json } from "./canonical.js";
import type { Code } from "./domains.js";
import type { Environment } from "./environment.js";
import { DomainError, VeilError } from "./errors.js";
import { lastingReport } from "./lasting.js";
import {
  capsOf,
  changeCaps,
  dayFor,
  dayOf,
  deltaLeft,
  fractionText,
  grant,
  isForgotten,
  left,
  moveBack,
  readBudget,
} from "./ledger.js";
import type { Budget, Caps } from "./ledger.js";
import { checkOpen, readKeys } from "./publication.js";
import type { Publication, Wanted } from "./publication.js";
import { Queue } from "./queue.js";
import { termsOf } from "./promise.js";
import type { Terms } from "./promise.js";
import { NOTHING, numberOf, sum } from "./ratio.js";
import { Source } from "./source.js";
import type { Charge, Parcel, Refusal, Store } from "./store.js";
import { reportId } from "./survey.js";
import type { Survey } from "./survey.js";
import { Words } from "./words.js";

/** Which survey, where it is, and what the person grants. */
export type Options = Common & (ByTask | ByName);

export interface ByTask {
  /** The task id: 64 hex digits that name the survey and everything in it. */
  readonly task: string;
  readonly name?: never;
}

export interface ByName {
  /** The survey's name: the latest of its waves that takes answers, signed for that name. */
  readonly name: string;
  readonly task?: never;
}

export interface Common {
  /** The collector's address, as "https://collector.example". */
  readonly collector: string;
  /** The collector's public key, 32 bytes as base64url; or several, while keys change. */
  readonly key: string | readonly string[];
  /**
   * What the person grants to all surveys of this page's origin together: epsilon over a lifetime, and per day; for all
   * answers to one survey; and a delta, without which surveys that need one are refused. It is stored with the first
   * opening. Later a smaller cap lowers it for good, a larger one is refused (`raiseCaps`), and one left out stays.
   */
  readonly budget: Budget;
  /** True to answer also where the collector keeps the times of reports finer than an hour. */
  readonly allowFineTimes?: boolean;
  /** The name of the database in the browser; "veil" unless told. */
  readonly database?: string;
}

/**
 * What became of an answer. It is paid for in every case. `earlier`: the survey was answered before, and what recognises
 * that answer is forgotten. So nothing was drawn, paid or sent now, and the rest is about that answer.
 */
export type Receipt = { readonly earlier?: true } & (
  | /** The collector has acknowledged it. */ { readonly state: "delivered" }
  | /** It waits on this device, and is sent when the collector can be reached. */ { readonly state: "queued" }
  | /** The collector will not take it, and it is not sent again. */ { readonly state: "refused"; readonly reason: Refusal }
);

/** What is spent and what is left, as exact decimals; where the survey has a delta, its own, and what is left of it. */
export interface Account {
  readonly cost: string;
  readonly left: string;
  readonly delta?: number;
  readonly deltaLeft?: number;
}

/** @internal */
export async function openClient(options: Options, environment: Environment): Promise<Client> {
  const [asked, keys] = [readBudget(options.budget), readKeys(options.key)];
  const collector = readAddress(options.collector);
  const wanted = readWanted(options);
  const store = await environment.open(options.database ?? "veil");
  try {
    const source = new Source(environment, store, collector, wanted, keys);
    const published = await source.look();
    checkOpen(published, environment.now(), options.allowFineTimes);
    published.survey.checkLasting();
    await store.commit((charges) => changeCaps(charges, asked, "lowered", dayOf(environment.now())), null);
    return new Client(published, source, collector, options, store, environment);
  } catch (problem) {
    store.close();
    throw problem;
  }
}

export class Client {
  // Truly private: no page can reach the entropy or the ledger through a client.
  readonly #survey: Survey; // the task id names everything in it: it never changes, only its times may
  readonly #published: Publication;
  readonly #source: Source;
  readonly #collector: string;
  readonly #options: Options;
  readonly #store: Store;
  readonly #environment: Environment;
  readonly #queue: Queue;

  /** @internal */
  constructor(
    published: Publication,
    source: Source,
    collector: string,
    options: Options,
    store: Store,
    environment: Environment,
  ) {
    this.#survey = published.survey;
    this.#published = published;
    this.#source = source;
    this.#collector = collector;
    this.#options = options;
    this.#store = store;
    this.#environment = environment;
    this.#queue = new Queue(environment, store, collector, (task) => this.#opens(task));
    void this.#queue.deliver().catch(() => undefined); // what an earlier visit left behind
  }

  /** The task id of the survey. */
  get task(): string {
    return this.#survey.task;
  }

  /** Which wave of its name the survey is, counted from 1; null where it has no name. */
  get wave(): number | null {
    return this.#published.about?.wave ?? null;
  }

  /**
   * The question for people in the first of these languages that it has, else in English, else in any; null where it has
   * none. `client.text(...navigator.languages)` is what the person reads best.
   */
  text(...languages: string[]): string | null {
    return bestText(this.#published.about?.texts ?? new Map<string, string>(), languages);
  }

  /** How many new reports the collector's answers count at a time, as it signed. */
  get step(): number {
    return this.#published.step;
  }

  /** What the survey asks about: the domain as it stands in the task, for a page that draws its own form. */
  get domain(): Json {
    return structuredClone(this.#survey.domain.json);
  }

  /** What the survey promises, what goes with an answer in clear and what is kept of it: for `statements`. */
  get terms(): Terms {
    return termsOf(this.#published, this.#collector);
  }

  /** What one answer costs, and what is left of the lifetime's budget. */
  async account(): Promise<Account> {
    const { cost, ask } = this.#survey;
    const charges = await this.#store.charges(true);
    const epsilon = { cost, left: left(charges) };
    if (!ask.delta[0]) return epsilon;
    return { ...epsilon, delta: numberOf(ask.delta), deltaLeft: numberOf(deltaLeft(charges)) };
  }

  /**
   * Randomizes an answer, pays for it, and sends it. `beside` are the survey's public columns, if it has any.
   *
   * The charge and the report are on the disk before anything leaves this device. A survey that may be answered again and
   * again (Rappor) gets one report for each `occasion`; the same answer on the same occasion is the same bytes. Without a
   * name, the occasion is the day (UTC).
   *
   * An answer that was delivered, or refused for good, is forgotten. After it, only one that the person has `changed` is
   * drawn, paid and sent: one more report. While the earlier one waits, a changed answer is recognised as such.
   */
  async answer(
    value: unknown,
    beside?: Readonly<Record<string, number | bigint>>,
    occasion?: string,
    changed = false,
  ): Promise<Receipt> {
    const published = await this.#source.current(); // it may have closed since this page was opened
    checkOpen(published, this.#environment.now(), this.#options.allowFineTimes);
    const survey = this.#survey;
    if (occasion !== undefined && (!survey.longitudinal || typeof occasion !== "string" || !occasion)) {
      throw new DomainError("expected an occasion only for a survey that is answered again and again, named by text");
    }
    const code = survey.domain.encode(value);
    const columns = survey.readPublic(beside);
    const named = occasion ?? dayOf(this.#environment.now());
    let sent = await this.#pay(code, columns, named, changed);
    while (sent === null) sent = await this.#pay(code, columns, named, changed); // another tab paid for the same answer
    await this.#queue.deliver(true).catch(() => undefined); // it is paid for, and waits: what fails now is tried again
    return this.#receipt(sent);
  }

  /**
   * Raises what the person grants, and records it with the day. Call it only when the person says so. A cap per survey that
   * is given for the first time is a raise, too: with it, a name's later survey may cost more than the first answer.
   */
  async raiseCaps(budget: Budget): Promise<void> {
    const asked = readBudget(budget);
    await this.#store.commit((charges) => changeCaps(charges, asked, "raised", dayOf(this.#environment.now())), null);
  }

  /** What the person grants: all caps since the ledger was created, the last ones in force. */
  async caps(): Promise<Caps[]> {
    return capsOf(await this.#store.charges(true));
  }

  /**
   * Sets the ledger's day back to this device's, or to a later one ("2026-01-31"), after a wrong clock has set it forward:
   * until then no new day would begin. It returns no budget: what was spent on later days counts on this day too. Call it
   * only when the person says that the ledger's day is wrong.
   */
  async moveClockBack(day?: string): Promise<void> {
    const today = dayOf(this.#environment.now());
    await this.#store.commit((charges) => [moveBack(charges, day ?? today, today)], null);
  }

  /** Tries to send what is waiting, now. It is also done by itself, when the network returns and at growing intervals. */
  deliver(): Promise<void> {
    return this.#queue.deliver(true);
  }

  /** How many reports of this page's origin wait for this collector. */
  async waiting(): Promise<number> {
    const parcels = await this.#store.parcels();
    return parcels.filter(({ collector, refusal }) => collector === this.#collector && refusal === null).length;
  }

  /** Stops sending and lets go of the database. What waits is sent after the next `open`. */
  close(): void {
    this.#queue.close();
    this.#store.close();
  }

  // The id of the report that is now queued; "" where an earlier answer was forgotten; null if something of this one was
  // written down meanwhile, and must be read again.
  async #pay(code: Code, beside: bigint[], occasion: string, changed: boolean): Promise<string | null> {
    const { task } = this.#survey;
    const mine = (await this.#store.charges()).filter((charge) => charge.task === task);
    const { report, fresh, paid } = await this.#drawn(code, beside, occasion, mine);
    let [overtaken, forgotten] = [false, false];
    const decide = (charges: Charge[]): Charge[] => {
      overtaken = charges.some((charge) => charge.task === task && fresh.has(charge.mark));
      forgotten = !changed && fresh.has(paid) && isForgotten(charges, task);
      if (overtaken || forgotten) throw new VeilError("overtaken", "this answer was paid for");
      return [...fresh].map(([mark, kept]) => this.#charged(charges, mark, kept, mark === paid));
    };
    try {
      await this.#store.commit(decide, parcelOf(this.#collector, task, report));
    } catch (problem) {
      if (overtaken) return null;
      if (forgotten) return "";
      throw problem;
    }
    return reportId(report);
  }

  // A report, what must be written down before it is sent, and the mark of what is paid for, if that is new.
  async #drawn(code: Code, beside: bigint[], occasion: string, mine: Charge[]): Promise<Drawing> {
    const survey = this.#survey;
    const kept = (mark: string) => mine.find((charge) => charge.mark === mark)?.kept;
    const words = new Words(this.#environment.fill);
    if (!survey.longitudinal) {
      const paid = await this.#mark(code, beside);
      const known = kept(paid);
      const report = known ?? (await survey.report(code, beside, words));
      return { report, fresh: new Map(known ? [] : [[paid, report]]), paid };
    }
    const [paid, given] = [await this.#mark(code, []), await this.#mark(code, beside, occasion)];
    const marks = { person: "person", value: paid, occasion: given };
    return { ...(await lastingReport(survey, code, beside, marks, { kept }, words)), paid };
  }

  #charged(charges: Charge[], mark: string, kept: Uint8Array<ArrayBuffer>, isPaid: boolean): Charge {
    const { task, cost, ask } = this.#survey;
    const now = this.#environment.now();
    if (!isPaid) return { day: dayFor(charges, now), task, epsilon: "0", mark, kept };
    const delta = ask.delta[0] ? { delta: fractionText(sum(ask.delta, NOTHING)) } : {};
    const { name } = this.#options;
    const series = name === undefined ? {} : { series: `${this.#collector} ${name}` };
    return grant(charges, { task, epsilon: cost, ...delta, ...series, mark, kept }, now);
  }

  // When a survey opens that the collector calls not open yet, in milliseconds; 0 where this client cannot know.
  async #opens(task: string): Promise<number> {
    if (task !== this.task) return 0; // another client's: signed with keys that this one may not know
    return this.#source.look({ task }).then(
      ({ opens }) => opens,
      () => 0,
    );
  }

  async #receipt(id: string): Promise<Receipt> {
    const mine = (await this.#store.parcels()).filter((parcel) => (id ? parcel.id === id : parcel.task === this.task));
    const refusals = mine.map(({ refusal }) => refusal);
    const reason = refusals.includes(null) ? null : refusals[0];
    const earlier = id ? {} : { earlier: true as const };
    if (reason) return { state: "refused", reason, ...earlier };
    return { state: mine.length ? "queued" : "delivered", ...earlier };
  }

  // Recognises an answer given before, by its code. It stays on the device, like the answer itself.
  async #mark(code: Code, beside: bigint[], ...occasion: string[]): Promise<string> {
    const text = code instanceof Uint8Array ? hex(code) : [code].flat().map(String);
    return hex(await sha256(encodeText(canonical([this.task, text, beside.map(String), ...occasion]))));
  }
}

interface Drawing {
  readonly report: Uint8Array<ArrayBuffer>;
  readonly fresh: ReadonlyMap<string, Uint8Array<ArrayBuffer>>;
  readonly paid: string;
}

const parcelOf = (collector: string, task: string, report: Uint8Array<ArrayBuffer>): Parcel => ({
  id: reportId(report),
  collector,
  task,
  report,
  attempts: 0,
  notBefore: 0,
  heldUntil: 0,
  refusal: null,
});

function readWanted({ task, name }: Options): Wanted {
  if (name === undefined && typeof task === "string" && /^[0-9a-f]{64}$/.test(task)) return { task };
  if (task === undefined && isName(name)) return { name };
  throw new VeilError("task", "expected either a task id, 64 hex digits, or a name: small letters, digits, -");
}

// In one spelling, so that a report waits for the same collector however it is written.
function readAddress(text: unknown): string {
  const address = typeof text === "string" && URL.canParse(text) ? new URL(text) : null;
  const plain = address?.protocol === "http:";
  if (address === null || !(plain || address.protocol === "https:") || /[?#]/.test(address.href) || address.username) {
    throw new VeilError("collector", 'expected the collector\'s address, as "https://collector.example"');
  }
  if (plain && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(address.hostname)) {
    throw new VeilError("collector", "expected an https address: over plain http anybody on the way sees and alters reports");
  }
  return address.href.replace(/\/+$/, "");
}
