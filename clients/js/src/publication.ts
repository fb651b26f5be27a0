// A published survey: signed by a key that the page has pinned, about the task that the page asked for, and open.

import { encodeText, fromBase64url, join, toBase64url } from "./bytes.js";
import { integer, malformed, parse, take } from "./canonical.js";
import type { Json } from "./canonical.js";
import { SurveyError, VeilError } from "./errors.js";
import { Survey } from "./survey.js";

const CONTEXT = join(encodeText("veil-published-survey-v1"), Uint8Array.of(0));

// What the collector sends: everything in it is checked here, and nothing is believed before its signature is.
export interface Envelope {
  readonly document: string;
  readonly key: string;
  readonly signature: string;
}

export interface Publication {
  readonly survey: Survey;
  readonly opens: number; // milliseconds, -Infinity where it was always open
  readonly closes: number; // Infinity where it does not close
}

// Public keys as base64url, at least one: what the page trusts.
export function readKeys(given: unknown): readonly string[] {
  const keys = Array.isArray(given) ? given : [given];
  if (!keys.length || !keys.every((key) => fromBase64url(key)?.length === 32)) {
    throw new SurveyError("key", "expected the collector's public key, 32 bytes as base64url, or a list of such keys");
  }
  return keys as string[];
}

export async function verify(envelope: unknown, keys: readonly string[], task: string): Promise<Publication> {
  const { document, key, signature } = (envelope ?? {}) as Partial<Envelope>;
  const [bytes, signed, pinned] = [fromBase64url(document), fromBase64url(signature), fromBase64url(key)];
  if (bytes === null || signed === null || pinned === null)
    throw malformed("a published survey: document, key and signature");
  if (!keys.includes(toBase64url(pinned))) {
    throw new SurveyError("key", "expected a survey signed with a key that this page knows");
  }
  if (!(await isSigned(bytes, signed, pinned))) {
    throw new SurveyError("signature", "expected a survey whose signature is right: this one was altered");
  }
  const published = await read(bytes);
  if (published.survey.task !== task) {
    throw new SurveyError(
      "task",
      "expected the survey that this page asked for, and not another of the same collector",
    );
  }
  return published;
}

async function isSigned(
  document: Uint8Array<ArrayBuffer>,
  signature: Uint8Array<ArrayBuffer>,
  key: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  try {
    const imported = await crypto.subtle.importKey("raw", key, "Ed25519", false, ["verify"]);
    return await crypto.subtle.verify("Ed25519", imported, signature, join(CONTEXT, document));
  } catch {
    throw new SurveyError(
      "unsupported",
      "expected a browser that verifies Ed25519 signatures, on a secure (https) page",
    );
  }
}

async function read(bytes: Uint8Array): Promise<Publication> {
  try {
    const document = parse(bytes);
    const keys = ["version", "opens", "closes", "precision", "survey"];
    const [version, opens, closes, precision, task] = take(document, "veil-published-survey", ...keys);
    integer(version, 1, 1);
    integer(precision, 1, Number.MAX_SAFE_INTEGER);
    return { survey: await Survey.read(task), opens: timeOf(opens) ?? -Infinity, closes: timeOf(closes) ?? Infinity };
  } catch (problem) {
    if (problem instanceof VeilError) throw problem;
    throw malformed("a survey that can be read"); // nested too deeply, or larger than this browser can hold
  }
}

function timeOf(document: Json | undefined): number | null {
  if (document === null) return null;
  const time = typeof document === "string" ? Date.parse(document) : NaN;
  if (Number.isNaN(time) || new Date(time).toISOString().replace(".000Z", "Z") !== document) {
    throw malformed("times in UTC, to the second");
  }
  return time;
}

export function checkOpen({ opens, closes }: Publication, now: number): void {
  if (now < opens) throw new SurveyError("not-open", "this survey is not open yet");
  if (now >= closes) throw new SurveyError("closed", "this survey is closed");
}
