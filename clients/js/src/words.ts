// Randomness: 64-bit words of entropy, and nothing but decided draws out of them (docs/wire-format.md, section 1).

export const WORD = 1n << 64n;
const LANES = WORD - 1n;

// Fills a buffer with fresh entropy: `crypto.getRandomValues`, or in a test what the test says.
export type Fill = (buffer: Uint8Array<ArrayBuffer>) => void;

export class Words {
  used = 0;
  readonly #fill: Fill;
  readonly #buffer: Uint8Array<ArrayBuffer>;
  readonly #view: DataView;
  #at: number;

  // Tests read one word at a time, so that they see how many are taken; a device reads ahead.
  constructor(fill: Fill, ahead = 64) {
    this.#fill = fill;
    this.#buffer = new Uint8Array(8 * ahead);
    this.#view = new DataView(this.#buffer.buffer);
    this.#at = this.#buffer.length;
  }

  word(): bigint {
    if (this.#at === this.#buffer.length) {
      this.#fill(this.#buffer);
      this.#at = 0;
    }
    const word = this.#view.getBigUint64(this.#at, true);
    this.#view.setBigUint64(this.#at, 0n); // a word is used once, even by mistake
    this.#at += 8;
    this.used += 1;
    return word;
  }

  // True with probability threshold / 2^64.
  coin(threshold: bigint): boolean {
    return this.word() < threshold;
  }

  // Uniform on 0 .. bound - 1. A bound of 1 takes a word as well.
  below(bound: bigint): bigint {
    const limit = WORD - (WORD % bound);
    let word = this.word();
    while (word >= limit) word = this.word();
    return word % bound;
  }

  // Several draws: first one word each, in order; then one more for each that was rejected, in order; and so on.
  belowEach(bounds: bigint[]): bigint[] {
    const drawn = bounds.map(() => this.word());
    const rejected = (i: number): boolean => (drawn[i] as bigint) >= WORD - (WORD % (bounds[i] as bigint));
    let again = bounds.map((_, i) => i).filter(rejected);
    while (again.length) {
      for (const i of again) drawn[i] = this.word();
      again = again.filter(rejected);
    }
    return drawn.map((word, i) => word % (bounds[i] as bigint));
  }

  // `width` coins as packed bits, lowest first: 64 lanes a block, compared with the threshold bit by bit from the top.
  coinBits(threshold: bigint, width: number): Uint8Array {
    const blocks = Math.ceil(width / 64);
    const undecided = new Array<bigint>(blocks).fill(LANES);
    if (width % 64) undecided[blocks - 1] = (1n << BigInt(width % 64)) - 1n;
    const heads = threshold === WORD ? [...undecided] : new Array<bigint>(blocks).fill(0n);
    for (let position = 63n; position >= 0n && threshold !== WORD; position--) {
      if ((threshold & ((2n << position) - 1n)) === 0n) break; // lanes that are still equal are not below
      const bit = (threshold >> position) & 1n;
      for (let block = 0; block < blocks; block++) {
        const open = undecided[block] as bigint;
        if (open === 0n) continue;
        const word = this.word();
        if (bit) heads[block] = (heads[block] as bigint) | (open & ~word);
        undecided[block] = open & (bit ? word : ~word);
      }
    }
    const packed = new DataView(new ArrayBuffer(8 * blocks));
    heads.forEach((lanes, block) => packed.setBigUint64(8 * block, lanes, true));
    return new Uint8Array(packed.buffer, 0, Math.ceil(width / 8));
  }
}
