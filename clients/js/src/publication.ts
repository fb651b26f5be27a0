// A published survey: signed by a key that the page has pinned, of the task or name that the page asked for, and open.

import { readAbout } from "./about.js";
import type { About } from "./about.js";
import { encodeText, fromBase64url, join, toBase64url } from "./bytes.js";
import { integer, malformed, parse, readTime, take, timeText } from "./canonical.js";
import type { Json, JsonObject } from "./canonical.js";
import { SurveyError, VeilError } from "./errors.js";
import { Survey } from "./survey.js";

const SURVEY = "veil-published-survey-v1\0";
const ABOUT = "veil-survey-about-v1\0";
const HOUR = 3600; // seconds: finer times of reports can show whose they are
const MAX_KEEP_DAYS = 36_525;
const CLOCK = 86_400_000; // milliseconds that this device's clock may be ahead of the collector's

// What a page asks for: a survey by its task id, or the latest wave of a name.
export type Wanted = { readonly task: string; readonly name?: never } | { readonly name: string; readonly task?: never };

// What the collector sends: everything in it is checked here, and nothing is believed before its signature is.
export interface Envelope {
  readonly document: string;
  readonly key: string;
  readonly signature: string;
  readonly about?: Envelope; // of a survey with a name
}

export interface Publication {
  readonly survey: Survey;
  readonly key: string; // that signed it, as base64url
  readonly about: About | null; // null where the survey has no name
  readonly opens: number; // milliseconds, -Infinity where it was always open
  readonly closes: number; // Infinity where it does not close
  readonly precision: number; // seconds to which the times of reports are kept
  readonly step: number; // how many new reports answers count at a time
  readonly keepDays: number | null; // after which reports are erased, counted from closing; null where nothing is said
}

// Public keys as base64url, at least one: what the page trusts.
export function readKeys(given: unknown): readonly string[] {
  const keys = Array.isArray(given) ? given : [given];
  if (!keys.length || !keys.every((key) => fromBase64url(key)?.length === 32)) {
    throw new SurveyError("key", "expected the collector's public key, 32 bytes as base64url, or a list of such keys");
  }
  return keys as string[];
}

export async function verify(envelope: unknown, keys: readonly string[], wanted: Wanted): Promise<Publication> {
  const [bytes, key] = await signed(envelope, keys, SURVEY);
  const published = await read(bytes);
  const { task } = published.survey;
  if (wanted.task !== undefined && wanted.task !== task) {
    throw new SurveyError(
      "task",
      "expected the survey that this page asked for",
    );
  }
  const beside = (envelope as { about?: unknown }).about;
  const about = beside === undefined ? null : readAbout((await signed(beside, [key], ABOUT))[0], task);
  if (wanted.name !== undefined && wanted.name !== about?.name) {
    throw new SurveyError("name", "expected a survey of the name that this page asked for");
  }
  return { ...published, key, about };
}

// The bytes of a document that one of the keys has signed for this purpose, and that key.
async function signed(
  envelope: unknown,
  keys: readonly string[],
  purpose: string,
): Promise<[Uint8Array<ArrayBuffer>, string]> {
  const { document, key, signature } = (envelope ?? {}) as Partial<Envelope>;
  const [bytes, proof, pinned] = [fromBase64url(document), fromBase64url(signature), fromBase64url(key)];
  if (bytes === null || proof === null || pinned === null)
    throw malformed("a published survey: document, key and signature");
  const known = toBase64url(pinned);
  if (!keys.includes(known)) {
    throw new SurveyError("key", "expected a survey signed with a key that this page knows");
  }
  if (!(await isSigned(join(encodeText(purpose), bytes), proof, pinned))) {
    throw new SurveyError("signature", "expected a survey whose signature is right: this one was altered");
  }
  return [bytes, known];
}

async function isSigned(
  message: Uint8Array<ArrayBuffer>,
  signature: Uint8Array<ArrayBuffer>,
  key: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  try {
    const imported = await crypto.subtle.importKey("raw", key, "Ed25519", false, ["verify"]);
    return await crypto.subtle.verify("Ed25519", imported, signature, message);
  } catch {
    throw new SurveyError(
      "unsupported",
      "expected a browser that verifies Ed25519 signatures, on a secure (https) page",
    );
  }
}

async function read(bytes: Uint8Array): Promise<Omit<Publication, "about" | "key">> {
  try {
    const { keep_days: keep, step, ...document } = parse(bytes) as JsonObject;
    const keys = ["version", "opens", "closes", "precision", "survey"];
    const [version, opens, closes, precision, task] = take(document, "veil-published-survey", ...keys);
    integer(version, 1, 1);
    return {
      survey: await Survey.read(task),
      opens: timeOf(opens) ?? -Infinity,
      closes: timeOf(closes) ?? Infinity,
      precision: integer(precision, 1, Number.MAX_SAFE_INTEGER),
      step: step === undefined ? 1 : integer(step, 1, Number.MAX_SAFE_INTEGER),
      keepDays: keep === undefined ? null : integer(keep, 1, MAX_KEEP_DAYS),
    };
  } catch (problem) {
    if (problem instanceof VeilError) throw problem;
    throw malformed("a survey that can be read"); // nested too deeply, or larger than this browser can hold
  }
}

const timeOf = (document: Json | undefined): number | null => (document === null ? null : readTime(document));

export const isOpen = ({ opens, closes }: Publication, now: number): boolean => opens <= now && now < closes;

export function checkOpen({ opens, closes, precision }: Publication, now: number, allowFineTimes = false): void {
  if (now < opens) {
    throw new SurveyError("not-open", `this survey is not open yet: it takes answers from ${timeText(opens)} on`);
  }
  if (now >= closes) throw new SurveyError("closed", `this survey is closed: it took answers until ${timeText(closes)}`);
  if (precision < HOUR && !allowFineTimes) {
    throw new SurveyError("fine-times", `expected times to the hour, got ${precision} s`);
  }
}

// Refuses a statement that the collector has not renewed in time.
export function checkValid({ about }: Publication, now: number): void {
  if (about !== null && now >= about.validUntil + CLOCK) {
    throw new SurveyError(
      "outdated",
      `this statement was valid until ${timeText(about.validUntil)}: expected a renewed one, and a clock right to a day`,
    );
  }
}
