// What a device remembers, and the two places where it can: the browser's database, or (for tests) memory.

// One answer that was paid for. `kept` is its report, or a longitudinal mechanism's permanent step. With an epsilon of "0",
// what else is kept of a longitudinal survey: what belongs to the person, and each occasion's report.
export interface Charge {
  readonly day: string; // UTC, as 2026-01-31
  readonly task: string;
  readonly epsilon: string; // a decimal, so that sums are exact
  readonly delta?: string; // "p/q", where there is one
  readonly series?: string; // the collector and the name under which it was asked for
  readonly mark: string; // recognises the same answer; it stays on the device
  readonly kept: Uint8Array<ArrayBuffer>;
}

// A report on its way, by its report id: the same report is never there twice.
export interface Parcel {
  readonly id: string;
  readonly collector: string;
  readonly task: string;
  readonly report: Uint8Array<ArrayBuffer>;
  readonly attempts: number;
  readonly notBefore: number; // our own patience: when the next attempt is due, in milliseconds
  readonly heldUntil: number; // the collector's wish (Retry-After), for all reports
  readonly opens?: number; // when this report's survey opens, once the collector has said that it is not open yet
  readonly refusal: Refusal | null; // set when the collector will never take it
}

export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

// In place of a task: a record of what the person grants, which is its mark.
export const CAPS = "caps:";
export const isCaps = ({ task }: Charge): boolean => task === CAPS;

export interface Store {
  charges(withCaps?: boolean): Promise<Charge[]>;
  // Durably, all or nothing, and alone: `decide` sees all charges and caps, and returns the new ones or throws to refuse.
  commit(decide: (charges: Charge[]) => readonly Charge[], parcel: Parcel | null): Promise<void>;
  // Changes each charge, or removes it where that is null; and puts a parcel in the place of the one with this id, or none.
  forget(change: (charge: Charge) => Charge | null, id: string, left?: Parcel): Promise<void>;
  parcels(): Promise<Parcel[]>;
  update(parcel: Parcel): Promise<void>;
  remove(id: string): Promise<void>;
  envelope(address: string): Promise<unknown>;
  keepEnvelope(address: string, envelope: unknown): Promise<void>;
  // Records durably that this device has seen a wave of a series; returns the highest one that it has seen.
  seeWave(series: string, wave: number): Promise<number>;
  close(): void;
}

// A report that waits, or that was refused, keeps its place and its history; given again to a collector at another address,
// it goes there: perhaps the first one has moved.
export const joined = (there: Parcel | undefined, parcel: Parcel): Parcel =>
  there?.collector === parcel.collector ? there : parcel;
