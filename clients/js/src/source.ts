// Where a survey comes from: the collector; while it cannot be reached, the copy that was verified before, verified again.

import type { Environment } from "./environment.js";
import { CollectorError, SurveyError } from "./errors.js";
import { forgetting } from "./ledger.js";
import { checkValid, isOpen, verify } from "./publication.js";
import type { Envelope, Publication, Wanted } from "./publication.js";
import { exchange, isPassing } from "./requests.js";
import type { Store } from "./store.js";

const FRESH = 300_000; // milliseconds for which a copy is as good as another look

export class Source {
  #latest: Publication | null = null;
  #seen = 0; // when the collector itself last said so
  #task: string | null = null; // what the page was given first: a name may come to mean another wave

  constructor(
    private readonly environment: Environment,
    private readonly store: Store,
    private readonly collector: string,
    private readonly wanted: Wanted,
    private readonly keys: readonly string[],
  ) {}

  // The survey as it stands, from the collector unless that was asked a few minutes ago.
  async current(): Promise<Publication> {
    const age = Math.abs(this.environment.now() - this.#seen); // a clock that was set back makes no copy fresh
    if (this.#latest === null || age > FRESH) return this.look();
    await this.#checkWave(this.#latest, this.wanted); // another tab may have seen a later one
    return this.#latest;
  }

  // The survey as the collector shows it now.
  async look(wanted = this.wanted): Promise<Publication> {
    const address = `${this.collector}/v1/surveys/${wanted.task ?? `by-name/${wanted.name}`}`;
    const answer = await exchange(this.environment.fetch, address);
    const asAsked = wanted.name === this.wanted.name; // by its task id, a survey may come without its name
    if (answer === null || isPassing(answer.status)) {
      const kept = await this.#kept(address, wanted);
      return asAsked ? (this.#latest = kept) : kept;
    }
    if (answer.status === 410) {
      this.#latest = null;
      const kept = await this.store.envelope(address);
      if (kept !== undefined) await this.store.forget(forgetting((await verify(kept, this.keys, wanted)).survey.task), "");
      await this.store.keepEnvelope(address, undefined); // nor may it be answered when the network is gone
      throw new SurveyError("closed", "this survey is closed: the collector takes no more answers");
    }
    if (answer.status !== 200) {
      throw new CollectorError(
        "survey-unknown",
        `the collector does not publish this survey (status ${answer.status})`,
      );
    }
    const found = await this.#verified(answer.body, wanted);
    if (asAsked) [this.#latest, this.#seen] = [found, this.environment.now()];
    await this.store.keepEnvelope(address, checkedOf(answer.body as Envelope));
    return found;
  }

  // An answer is for the wave that the person was asked.
  async #verified(envelope: unknown, wanted: Wanted): Promise<Publication> {
    const found = await verify(envelope, this.keys, wanted);
    if (wanted.name !== undefined) checkValid(found, this.environment.now());
    await this.#checkWave(found, wanted);
    this.#task ??= found.survey.task;
    if (found.survey.task === this.#task) return found;
    throw new SurveyError("wave", "another wave of this name is open now: open it anew, and ask again");
  }

  // Somebody who can only repeat what the collector once signed could otherwise have an earlier wave paid again.
  async #checkWave(found: Publication, { name }: Wanted): Promise<void> {
    if (found.about === null || !isOpen(found, this.environment.now())) return;
    const { wave } = found.about;
    const highest = await this.store.seeWave(`${found.key} ${found.about.name}`, wave);
    if (name !== undefined && wave < highest) {
      throw new SurveyError("rollback", `expected wave ${highest} of this name, which this device has seen, or a later one`);
    }
  }

  async #kept(address: string, wanted: Wanted): Promise<Publication> {
    const kept = await this.store.envelope(address);
    if (kept !== undefined) return this.#verified(kept, wanted);
    throw new CollectorError("offline", "the collector cannot be reached, and this device has no copy of the survey");
  }
}

// What was checked of a published survey, and nothing that may stand beside it.
const checkedOf = ({ document, key, signature, about }: Envelope): Envelope => ({
  document,
  key,
  signature,
  ...(about && { about: checkedOf(about) }),
});
