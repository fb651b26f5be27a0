// What every request to a collector has in common.

const PATIENCE = 20_000; // milliseconds for one attempt

// Nothing beside the report: no cookies, no address of the page, no cache, and no other place than the one asked.
export const requestOptions = (): RequestInit => ({
  mode: "cors",
  credentials: "omit",
  referrerPolicy: "no-referrer",
  cache: "no-store",
  redirect: "error",
  signal: AbortSignal.timeout(PATIENCE),
});

// Whether the same request may succeed later.
export const isPassing = (status: number): boolean => status >= 500 || status === 408 || status === 429;
