// The store in the browser: IndexedDB, shared by all tabs of the page's origin.
//
// Paying and queueing are one read-write transaction. Transactions over the same stores run one after another, in all
// tabs, so that two tabs cannot spend the same budget; and `durability: "strict"` asks for the disk, not for its cache.

import { StorageError, VeilError } from "./errors.js";
import { isCaps, joined } from "./store.js";
import type { Charge, Parcel, Store } from "./store.js";

const VERSION = 3;
const [CHARGES, PARCELS, SURVEYS, WAVES] = ["charges", "parcels", "surveys", "waves"];

export function openDatabase(factory: IDBFactory | undefined, name: string): Promise<Store> {
  return guarded(
    () =>
      new Promise<Store>((resolve, reject) => {
        if (factory === undefined) throw new Error();
        const request = factory.open(name, VERSION);
        request.onupgradeneeded = ({ oldVersion }) => {
          if (oldVersion) throw new Error(); // of an older version, whose ledger has no caps
          request.result.createObjectStore(CHARGES, { autoIncrement: true });
          request.result.createObjectStore(PARCELS, { keyPath: "id" });
          request.result.createObjectStore(SURVEYS);
          request.result.createObjectStore(WAVES);
        };
        request.onerror = request.onblocked = reject;
        request.onsuccess = () => {
          request.result.onversionchange = () => request.result.close(); // another tab has a newer client
          resolve(new Database(request.result));
        };
      }),
  );
}

// Whatever fails, fails closed, and as one kind of error.
async function guarded<Result>(run: () => Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (problem) {
    if (problem instanceof VeilError) throw problem;
    throw new StorageError("expected a database (IndexedDB) that can be read and written: nothing is spent or sent");
  }
}

class Database implements Store {
  constructor(private readonly database: IDBDatabase) {}

  async charges(withCaps = false): Promise<Charge[]> {
    const all = checkCharges(await this.#read(CHARGES, (store) => store.getAll()));
    return all.filter((charge) => withCaps || !isCaps(charge));
  }

  commit(decide: (charges: Charge[]) => readonly Charge[], parcel: Parcel | null): Promise<void> {
    return this.#write([CHARGES, PARCELS], (transaction, refuse) => {
      const [charges, parcels] = [transaction.objectStore(CHARGES), transaction.objectStore(PARCELS)];
      const known = charges.getAll();
      const there = parcels.get(parcel?.id ?? "");
      there.onsuccess = () => {
        // requests succeed in order: both are here
        try {
          for (const charge of decide(checkCharges(known.result))) charges.add(charge);
          if (parcel !== null) parcels.put(joined(there.result as Parcel | undefined, parcel));
        } catch (problem) {
          refuse(problem);
        }
      };
    });
  }

  forget(change: (charge: Charge) => Charge | null, id: string, left?: Parcel): Promise<void> {
    return this.#write([CHARGES, PARCELS], (transaction) => {
      const [charges, parcels] = [transaction.objectStore(CHARGES), transaction.objectStore(PARCELS)];
      if (left) parcels.put(left);
      else parcels.delete(id);
      const request = charges.openCursor();
      request.onsuccess = () => {
        const cursor = request.result;
        if (cursor === null) return;
        const changed = change(cursor.value as Charge);
        if (changed === null) cursor.delete();
        else if (changed !== cursor.value) cursor.update(changed);
        cursor.continue();
      };
    });
  }

  parcels(): Promise<Parcel[]> {
    return this.#read(PARCELS, (store) => store.getAll());
  }

  update(parcel: Parcel): Promise<void> {
    return this.#write([PARCELS], (transaction) => void transaction.objectStore(PARCELS).put(parcel));
  }

  remove(id: string): Promise<void> {
    return this.#write([PARCELS], (transaction) => void transaction.objectStore(PARCELS).delete(id));
  }

  envelope(address: string): Promise<unknown> {
    return this.#read(SURVEYS, (store) => store.get(address));
  }

  keepEnvelope(address: string, envelope: unknown): Promise<void> {
    return this.#write([SURVEYS], (transaction) => void transaction.objectStore(SURVEYS).put(envelope, address));
  }

  async seeWave(series: string, wave: number): Promise<number> {
    let highest = wave;
    await this.#write([WAVES], (transaction, refuse) => {
      const waves = transaction.objectStore(WAVES);
      const request = waves.get(series);
      request.onsuccess = () => {
        const seen: unknown = request.result ?? 0;
        if (!Number.isSafeInteger(seen)) refuse(damaged());
        else if ((seen as number) < wave) waves.put(wave, series);
        else highest = seen as number;
      };
    });
    return highest;
  }

  close(): void {
    this.database.close();
  }

  #read<Result>(store: string, ask: (store: IDBObjectStore) => IDBRequest<Result>): Promise<Result> {
    return guarded(
      () =>
        new Promise<Result>((resolve, reject) => {
          const request = ask(this.database.transaction(store).objectStore(store));
          request.onsuccess = () => resolve(request.result);
          request.onerror = reject;
        }),
    );
  }

  // Done when the transaction is: what the body asked for is on the disk, or none of it is.
  #write(
    stores: string[],
    body: (transaction: IDBTransaction, refuse: (problem: unknown) => void) => void,
  ): Promise<void> {
    return guarded(
      () =>
        new Promise<void>((resolve, reject) => {
          const transaction = this.database.transaction(stores, "readwrite", { durability: "strict" });
          transaction.oncomplete = () => resolve();
          transaction.onabort = transaction.onerror = reject;
          body(transaction, (problem) => {
            reject(problem);
            transaction.abort();
          });
        }),
    );
  }
}

// A ledger that cannot be understood grants nothing.
function checkCharges(charges: Charge[]): Charge[] {
  for (const { day, task, epsilon, mark, kept } of charges) {
    const texts = [day, task, epsilon, mark].every((text) => typeof text === "string");
    if (!texts || !/^\d+(\.\d+)?$/.test(epsilon) || !(kept instanceof Uint8Array)) {
      throw damaged();
    }
  }
  return charges;
}

const damaged = () => new StorageError("the ledger is damaged, so nothing is spent");
