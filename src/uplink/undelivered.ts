/**
 * Finds kinds of topics that the broker accepts and drops. MQTT 3.1.1 has no refusal code, but the cloud's
 * acknowledgements show it: messages of other kinds that were sent later are stored, and these never are.
 */
import type { CloudAck } from '../contract/tasks.ts';
import { channelKind } from '../contract/topics.ts';
import { outgoingId, type OutgoingMessage } from '../outbox/live/outgoing.ts';
import { positionOf } from '../outbox/row.ts';
import type { Problems } from './problems.ts';
import { texts } from './texts.ts';

/** One message of each kind at a time is watched for so long. */
const patience_ms = 60_000;
/** So many of a kind in a row, none of them stored while others were, are no accident. */
const misses_max = 3;

interface Sample {
  readonly epoch: number;
  readonly seq: number;
  readonly at_ms: number;
}

interface Kind {
  sample: Sample | undefined;
  misses: number;
  /** When the newest message of the kind that is known to be stored was delivered. */
  stored_at_ms: number;
}

export class Undelivered {
  readonly #now: () => number;
  readonly #problems: Pick<Problems, 'note' | 'clear'>;
  /** The contract has few kinds. */
  readonly #kinds = new Map<string, Kind>();

  constructor(now: () => number, problems: Pick<Problems, 'note' | 'clear'>) {
    this.#now = now;
    this.#problems = problems;
  }

  /** The broker acknowledged it. */
  delivered(outgoing: OutgoingMessage): void {
    const name = channelKind(outgoing.channel);
    const kind = this.#kinds.get(name) ?? {
      sample: undefined,
      misses: 0,
      stored_at_ms: Number.NEGATIVE_INFINITY,
    };
    kind.sample ??= { ...positionOf(outgoingId(outgoing)), at_ms: this.#now() };
    this.#kinds.set(name, kind);
  }

  /** The cloud acknowledged these. */
  stored({ epoch, ranges }: CloudAck): void {
    for (const kind of this.#kinds.values()) {
      const { sample } = kind;
      if (sample?.epoch !== epoch || !ranges.some(([lo, hi]) => lo <= sample.seq && sample.seq <= hi))
        continue;
      kind.stored_at_ms = sample.at_ms;
      kind.sample = undefined;
      kind.misses = 0;
    }
    this.#judge();
  }

  #judge(): void {
    const newest_stored_ms = Math.max(
      ...Array.from(this.#kinds.values(), ({ stored_at_ms }) => stored_at_ms),
    );
    for (const kind of this.#kinds.values()) {
      const { sample } = kind;
      if (!sample || this.#now() - sample.at_ms < patience_ms || newest_stored_ms < sample.at_ms) continue;
      kind.misses = Math.min(kind.misses + 1, misses_max);
      // The acknowledgement may have overtaken the broker's: the next one decides.
      kind.sample = undefined;
    }
    const lost = [...this.#kinds].filter(([, { misses }]) => misses >= misses_max).map(([name]) => name);
    if (lost.length === 0) {
      this.#problems.clear('undelivered');
      return;
    }
    noteUndelivered(lost, this.#problems);
  }
}

export function noteUndelivered(kinds: readonly string[], problems: Pick<Problems, 'note'>): void {
  problems.note('undelivered', {
    sentence: `broker accepts messages of kind ${kinds.join(', ')} and the cloud never stores them, though it stores others (MQTT 3.1.1 has no refusals); check the access rules of the broker`,
    line: texts.not_stored,
    facts: { kinds },
    lasts: 'until_cleared',
  });
}
