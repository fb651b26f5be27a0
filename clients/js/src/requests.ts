// Requests to a collector: one deadline for all of it, and no more bytes than an answer may have.

import { readJson } from "./canonical.js";

const PATIENCE = 20_000; // milliseconds for one exchange, from the connection to the last byte
const SURVEY = 1 << 24; // bytes of a published survey
const SAID = 1 << 16; // bytes of an answer to a report

export interface Answer {
  readonly status: number;
  readonly body: unknown; // null where it is no JSON
  readonly retryAfter: string | null;
}

// Null where no whole answer came. Nothing is sent beside the report: no cookies, no address of the page; nothing is
// cached; and no redirect is followed.
export async function exchange(
  fetch: (address: string, options?: RequestInit) => Promise<Response>,
  address: string,
  report?: Uint8Array<ArrayBuffer>,
): Promise<Answer | null> {
  try {
    const response = await fetch(address, {
      mode: "cors",
      credentials: "omit",
      referrerPolicy: "no-referrer",
      cache: "no-store",
      redirect: "error",
      signal: AbortSignal.timeout(PATIENCE),
      ...(report && { method: "POST", headers: { "Content-Type": "application/vnd.veil.reports" }, body: report }),
    });
    const body = await received(response, report ? SAID : SURVEY);
    return { status: response.status, body: readJson(body), retryAfter: response.headers.get("Retry-After") };
  } catch {
    return null; // no network, no answer in time, or one that is too long: a report may have arrived, and the id tells
  }
}

// The bytes of a body. Kept in one buffer: a million pieces of one byte would take much more.
async function received({ body }: Response, most: number): Promise<Uint8Array> {
  const reader = body?.getReader();
  let [whole, size] = [new Uint8Array(1 << 12), 0];
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
    if (done) return whole.subarray(0, size);
    if (size + value.length > most) {
      void reader?.cancel().catch(() => undefined);
      throw new Error();
    }
    if (size + value.length > whole.length) {
      const longer = new Uint8Array(2 * (size + value.length));
      longer.set(whole);
      whole = longer;
    }
    whole.set(value, size);
    size += value.length;
  }
}

// Whether the same request may succeed later.
export const isPassing = (status: number): boolean => status >= 500 || status === 408 || status === 429;
