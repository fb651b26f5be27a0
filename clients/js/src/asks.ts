// The tree of a survey: a question, one of several asks drawn by shares, or all of several.

import { byKind, integer, listOf, malformed, pairsOf, take } from "./canonical.js";
import type { Json } from "./canonical.js";
import { integers, overlay } from "./columns.js";
import type { Column, Drawn } from "./columns.js";
import type { Code, Domain } from "./domains.js";
import { readMechanism } from "./mechanisms/index.js";
import type { Mechanism } from "./mechanisms/index.js";
import { larger, product, sum } from "./ratio.js";
import type { Guarantee } from "./ratio.js";
import { readView } from "./views.js";
import type { View } from "./views.js";
import type { Words } from "./words.js";

export interface Ask extends Guarantee {
  readonly columns: readonly Column[];
  readonly lifetime: boolean; // whether the promise is one of all reports about a value, or of each
  readonly question?: { readonly view: View; readonly mechanism: Mechanism };
  draw(code: Code, words: Words): Promise<Drawn>;
}

function question(document: Json, held: Domain): Ask {
  const [seen, by] = take(document, "question", "view", "mechanism");
  const view = readView(seen, held);
  const mechanism = readMechanism(by, view.domain);
  return {
    columns: mechanism.columns,
    ...view.outer(mechanism),
    lifetime: mechanism.longitudinal !== undefined,
    question: { view, mechanism },
    draw: async (code, words) => mechanism.draw(view.apply(code, words), words),
  };
}

function oneOf(document: Json, held: Domain, depth: number): Ask {
  const branches = pairsOf(take(document, "one-of", "branches")[0]).map(([share, part]) => {
    const ask = readAsk(part, held, depth + 1);
    if ((part as { kind: string }).kind === "one-of") throw malformed("one-of without a one-of directly within it");
    return { share: BigInt(integer(share, 1, 2 ** 32)), ask };
  });
  const asks = branches.map(({ ask }) => ask);
  const lifetime = sameScope(asks);
  const total = branches.reduce((sum, { share }) => sum + share, 0n);
  return {
    columns: [integers("choice", BigInt(asks.length)), ...overlay(asks.flatMap(({ columns }) => columns))],
    ratio: asks.map(({ ratio }) => ratio).reduce(larger),
    delta: asks.map(({ delta }) => delta).reduce(larger),
    lifetime,
    async draw(code, words) {
      let rest = words.below(total);
      const choice = branches.findIndex(({ share }) => (rest -= share) < 0n);
      return { choice: [BigInt(choice)], ...(await (asks[choice] as Ask).draw(code, words)) };
    },
  };
}

function allOf(document: Json, held: Domain, depth: number): Ask {
  const asks = listOf(take(document, "all-of", "asks")[0]).map((part) => readAsk(part, held, depth + 1));
  const lifetime = sameScope(asks);
  return {
    columns: asks.flatMap(({ columns }, i) => columns.map((column) => ({ ...column, name: `${i}.${column.name}` }))),
    ratio: asks.map(({ ratio }) => ratio).reduce(product),
    delta: asks.map(({ delta }) => delta).reduce(sum),
    lifetime,
    async draw(code, words) {
      const drawn: Drawn = {};
      for (const [i, ask] of asks.entries()) {
        for (const [name, column] of Object.entries(await ask.draw(code, words))) drawn[`${i}.${name}`] = column;
      }
      return drawn;
    },
  };
}

function sameScope(asks: Ask[]): boolean {
  const scopes = new Set(asks.map(({ lifetime }) => lifetime));
  if (scopes.size !== 1)
    throw malformed("at least one ask, and promises of one kind: of each report, or of a lifetime");
  return scopes.has(true);
}

const readers: Record<string, (document: Json, held: Domain, depth: number) => Ask> = {
  question,
  "one-of": oneOf,
  "all-of": allOf,
};

// The tree that a task describes, about a held domain.
export function readAsk(document: Json | undefined, held: Domain, depth = 0): Ask {
  if (depth > 8) throw malformed("a survey of at most eight levels");
  return byKind(document, readers, "an ask")(document as Json, held, depth);
}
