// The columns of a report: `count` unsigned little-endian integers of `width` bytes each, or packed bits.

import { bytesFor } from "./bytes.js";

export interface Column {
  readonly name: string;
  readonly width: number;
  readonly count: number;
  readonly bits: number | null;
}

// What was drawn, by column; a column that is not there is all zeros.
export type Drawn = Record<string, readonly bigint[] | Uint8Array>;

export const widthFor = (bound: bigint): number => [1, 2, 4].find((width) => bound <= 1n << BigInt(8 * width)) ?? 8;

export const integers = (name: string, bound: bigint, count = 1): Column => ({
  name,
  width: widthFor(bound),
  count,
  bits: null,
});

export const packedBits = (name: string, bits: number): Column => ({ name, width: 1, count: bytesFor(bits), bits });

export function setBit(bytes: Uint8Array, index: bigint, on: boolean): void {
  const [byte, mask] = [Number(index >> 3n), 1 << Number(index & 7n)];
  bytes[byte] = ((bytes[byte] as number) & ~mask) | (on ? mask : 0);
}

// Columns of the same name share their place, with room for each.
export function overlay(columns: Column[]): Column[] {
  const merged = new Map<string, Column>();
  for (const column of columns) {
    const other = merged.get(column.name) ?? column;
    merged.set(column.name, {
      name: column.name,
      width: Math.max(other.width, column.width),
      count: Math.max(other.count, column.count),
      bits: other.bits === null || column.bits === null ? null : Math.max(other.bits, column.bits),
    });
  }
  return [...merged.values()];
}

export function pack(columns: readonly Column[], drawn: Drawn): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(columns.reduce((size, { width, count }) => size + width * count, 0));
  let at = 0;
  for (const { name, width, count } of columns) {
    const values = drawn[name] ?? [];
    values.forEach((value, i) => {
      let rest = BigInt(value);
      for (let k = 0; k < width; k++, rest >>= 8n) bytes[at + i * width + k] = Number(rest & 255n);
    });
    at += width * count;
  }
  return bytes;
}

// The way back, for what a device keeps itself.
export function unpack(columns: readonly Column[], bytes: Uint8Array): Drawn {
  const drawn: Drawn = {};
  let at = 0;
  for (const { name, width, count, bits } of columns) {
    const own = bytes.subarray(at, (at += width * count));
    drawn[name] =
      bits !== null
        ? own.slice()
        : Array.from({ length: count }, (_, i) =>
            own.subarray(i * width, (i + 1) * width).reduceRight((number, byte) => (number << 8n) | BigInt(byte), 0n),
          );
  }
  return drawn;
}
