// Bytes as hex, as base64url and as integers.

const utf8 = new TextEncoder();

export const encodeText = (text: string): Uint8Array<ArrayBuffer> => utf8.encode(text) as Uint8Array<ArrayBuffer>;

export const hex = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

export const fromBigEndian = (bytes: Uint8Array): bigint => (bytes.length ? BigInt(`0x${hex(bytes)}`) : 0n);

export function bigEndian(number: bigint, width: number): Uint8Array {
  return littleEndian(number, width).reverse();
}

export function littleEndian(number: bigint, width: number): Uint8Array {
  const bytes = new Uint8Array(width);
  for (let i = 0; i < width; i++, number >>= 8n) bytes[i] = Number(number & 255n);
  return bytes;
}

export const bytesFor = (bits: number): number => Math.ceil(bits / 8);

export function join(...parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

// Base64url without padding; null for anything that is not exactly what encoding would write.
export function fromBase64url(text: unknown): Uint8Array<ArrayBuffer> | null {
  if (typeof text !== "string" || !/^[\w-]*$/.test(text)) return null;
  try {
    const bytes = Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (char) => char.charCodeAt(0));
    return toBase64url(bytes) === text ? bytes : null;
  } catch {
    return null;
  }
}

export const toBase64url = (bytes: Uint8Array): string =>
  btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))
    .replace(/\+/g, "-")
    .replace(/\//g, "_")
    .replace(/=/g, "");

export async function sha256(...parts: Uint8Array[]): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", join(...parts)));
}
