// The tree of a survey: a question, one of several asks drawn by shares, all of several, or one of many by a rule.

import { byKind, integer, listOf, malformed, pairsOf, take } from "./canonical.js";
import type { Json } from "./canonical.js";
import { integers, overlay } from "./columns.js";
import type { Column, Drawn } from "./columns.js";
import type { Code, Domain } from "./domains.js";
import { readFamily } from "./family.js";
import { readMechanism } from "./mechanisms/index.js";
import type { Mechanism } from "./mechanisms/index.js";
import { NOTHING, larger, product, sum } from "./ratio.js";
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
    ...asked(mechanism),
    ...view.outer(mechanism),
    question: { view, mechanism },
    draw: async (code, words) => mechanism.draw(view.apply(code, words), words),
  };
}

function oneOf(document: Json, held: Domain, depth: number): Ask {
  const branches = pairsOf(take(document, "one-of", "branches")[0]).map(([share, part]) => {
    const ask = readAsk(part, held, depth + 1);
    if (ask.columns[0]?.name === "choice") throw malformed("no choice directly within a one-of");
    return { share: BigInt(integer(share, 1, 2 ** 32)), ask };
  });
  const asks = branches.map(({ ask }) => ask);
  const total = branches.reduce((sum, { share }) => sum + share, 0n);
  return choosing(asks, BigInt(asks.length), async (code, words) => {
    let rest = words.below(total);
    const choice = branches.findIndex(({ share }) => (rest -= share) < 0n);
    return { choice: [BigInt(choice)], ...(await (asks[choice] as Ask).draw(code, words)) };
  });
}

// One of so many asks of these kinds: the choice tells nothing, so that the weakest promise counts.
function choosing(kinds: Omit<Ask, "draw">[], count: bigint, draw: Ask["draw"]): Ask {
  return {
    lifetime: sameScope(kinds),
    columns: [integers("choice", count), ...overlay(kinds.flatMap(({ columns }) => columns))],
    ratio: kinds.map(({ ratio }) => ratio).reduce(larger),
    delta: kinds.map(({ delta }) => delta).reduce(larger),
    draw,
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

// One of many questions, drawn uniformly; their views draw nothing.
function eachOf(document: Json, held: Domain): Ask {
  const [rule, table] = take(document, "each-of", "rule", "mechanisms");
  const { count, mechanisms, shown } = readFamily(rule, table, held);
  return choosing(mechanisms.map(asked), count, async (code, words) => {
    const choice = words.below(count);
    const [index, mechanism] = shown(choice, code);
    return { choice: [choice], ...(await mechanism.draw(index, words)) };
  });
}

const asked = ({ columns, ratio, longitudinal }: Mechanism): Omit<Ask, "draw"> => ({
  columns,
  ratio,
  delta: NOTHING,
  lifetime: longitudinal !== undefined,
});

function sameScope(asks: Omit<Ask, "draw">[]): boolean {
  const scopes = new Set(asks.map(({ lifetime }) => lifetime));
  if (scopes.size !== 1)
    throw malformed("asks with promises of one kind");
  return scopes.has(true);
}

const readers: Record<string, (document: Json, held: Domain, depth: number) => Ask> = {
  question,
  "one-of": oneOf,
  "all-of": allOf,
  "each-of": eachOf,
};

// The tree that a task describes, about a held domain.
export function readAsk(document: Json | undefined, held: Domain, depth = 0): Ask {
  if (depth > 8) throw malformed("a survey of at most eight levels");
  return byKind(document, readers, "an ask")(document as Json, held, depth);
}
