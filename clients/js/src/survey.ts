// A survey as a device reads it: what may be answered, what a report looks like, and what it costs.

import { readAsk } from "./asks.js";
import type { Ask } from "./asks.js";
import { encodeText, hex, join, littleEndian, sha256 } from "./bytes.js";
import { canonical, decimalText, integer, isObject, malformed, pairsOf, take } from "./canonical.js";
import type { Json } from "./canonical.js";
import { integers, pack } from "./columns.js";
import type { Column, Drawn } from "./columns.js";
import { readDomain } from "./domains.js";
import type { Code, Domain } from "./domains.js";
import { DomainError, SurveyError } from "./errors.js";
import { epsilonOf } from "./ratio.js";
import { WORD } from "./words.js";
import type { Words } from "./words.js";

const VERSION = 1;
const MOST_WAVES = 1_000_000;

// The task without its wave, which it mentions from the second on: the same question asked again, with an id of its own.
function firstWave(document: Json | undefined): Json | undefined {
  if (!isObject(document) || !Object.hasOwn(document, "wave")) return document;
  const { wave, ...rest } = document;
  integer(wave, 2, MOST_WAVES);
  return rest;
}

export class Survey {
  readonly task: string; // the task id, in hex
  readonly cost: string; // epsilon of one answer: the exact ratio's logarithm, rounded up, as a decimal

  private constructor(
    readonly domain: Domain,
    readonly ask: Ask,
    readonly publicNames: readonly string[],
    private readonly id: Uint8Array,
  ) {
    this.task = hex(id);
    this.cost = decimalText(epsilonOf(ask.ratio));
  }

  // Strict: unknown kinds and keys, and thresholds that break their epsilon, are refused.
  static async read(document: Json | undefined): Promise<Survey> {
    const [version, held, ask, columns] = take(firstWave(document), "veil-survey", "version", "domain", "ask", "public");
    integer(version, VERSION, VERSION);
    const names = pairsOf(columns).map(([name, scale]) => {
      integer(scale, 0, 9);
      if (typeof name !== "string" || !name) throw malformed("public columns with names that differ");
      return name;
    });
    if (new Set(names).size !== names.length) throw malformed("public columns with names that differ");
    const domain = readDomain(held);
    const id = await sha256(encodeText(canonical(document as Json)));
    return new Survey(domain, readAsk(ask, domain), names, id);
  }

  get columns(): Column[] {
    return [...this.ask.columns, ...this.publicNames.map((name) => integers(`public.${name}`, WORD))];
  }

  // The public columns beside an answer, as they stand in a report: integers on the survey's scales.
  readPublic(beside: Readonly<Record<string, number | bigint>> = {}): bigint[] {
    if (!Object.keys(beside).every((name) => this.publicNames.includes(name))) {
      throw new DomainError(`expected no public columns but ${this.publicNames.join(", ") || "none"}`);
    }
    return this.publicNames.map((name) => {
      const value = Object.hasOwn(beside, name) ? beside[name] : null;
      const whole = typeof value === "bigint" ? value : Number.isSafeInteger(value) ? BigInt(value as number) : null;
      if (whole === null || BigInt.asIntN(64, whole) !== whole) {
        throw new DomainError(`expected an integer in the public column "${name}"`);
      }
      return whole;
    });
  }

  // The normative report. Draw order: path through the tree, view, mechanism, report id.
  async report(code: Code, beside: bigint[], words: Words): Promise<Uint8Array<ArrayBuffer>> {
    return this.frame(await this.ask.draw(code, words), beside, words);
  }

  // Refuses a longitudinal mechanism within a tree: each new value would draw the person's cohort, and the path, anew.
  checkLasting(): void {
    if (!this.ask.lifetime || this.longitudinal) return;
    throw new SurveyError(
      "unsupported",
      "expected Rappor as the survey's one question: within a tree its promise would not hold over time",
    );
  }

  // Whether it may be answered again and again: one question, by a longitudinal mechanism.
  get longitudinal(): boolean {
    return this.ask.question?.mechanism.longitudinal !== undefined;
  }

  frame(drawn: Drawn, beside: bigint[], words: Words): Uint8Array<ArrayBuffer> {
    const reportId = [words.word(), words.word()].map((word) => littleEndian(word, 8));
    const publicColumns = beside.map((number) => littleEndian(BigInt.asUintN(64, number), 8));
    return join(Uint8Array.of(VERSION), this.id, ...reportId, pack(this.ask.columns, drawn), ...publicColumns);
  }
}

// A framed report's id, in hex.
export const reportId = (report: Uint8Array): string => hex(report.subarray(33, 49));
