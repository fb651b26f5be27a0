// A store that forgets when the page does: for tests, and for node.

import { isCaps, joined } from "./store.js";
import type { Charge, Parcel, Store } from "./store.js";

export class MemoryStore implements Store {
  #charges: Charge[] = [];
  readonly #parcels = new Map<string, Parcel>();
  readonly #envelopes = new Map<string, unknown>();
  readonly #waves = new Map<string, number>();

  async charges(withCaps = false): Promise<Charge[]> {
    return this.#charges.filter((charge) => withCaps || !isCaps(charge));
  }

  async commit(decide: (charges: Charge[]) => readonly Charge[], parcel: Parcel | null): Promise<void> {
    this.#charges.push(...decide([...this.#charges]));
    if (parcel !== null) this.#parcels.set(parcel.id, joined(this.#parcels.get(parcel.id), parcel));
  }

  async forget(change: (charge: Charge) => Charge | null, id: string, left?: Parcel): Promise<void> {
    this.#charges = this.#charges.map(change).filter((charge) => charge !== null);
    if (left) this.#parcels.set(id, left);
    else this.#parcels.delete(id);
  }

  async parcels(): Promise<Parcel[]> {
    return [...this.#parcels.values()];
  }

  async update(parcel: Parcel): Promise<void> {
    this.#parcels.set(parcel.id, parcel);
  }

  async remove(id: string): Promise<void> {
    this.#parcels.delete(id);
  }

  async envelope(address: string): Promise<unknown> {
    return this.#envelopes.get(address);
  }

  async keepEnvelope(address: string, envelope: unknown): Promise<void> {
    this.#envelopes.set(address, envelope);
  }

  async seeWave(series: string, wave: number): Promise<number> {
    const highest = Math.max(wave, this.#waves.get(series) ?? 0);
    this.#waves.set(series, highest);
    return highest;
  }

  close(): void {
    // nothing is held open
  }
}
