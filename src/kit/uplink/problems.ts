/** What is wrong between kit and broker now: logged once each, and shown as `degraded` until it is over. */
import { texts } from './texts.ts';
import type { CloudAck } from '../../contract/tasks.ts';
import { channelKind } from '../../contract/topics.ts';
import { outgoingId, type OutgoingMessage } from '../outbox/live/outgoing.ts';
import { positionOf, type RowId } from '../outbox/row.ts';

/** A thing that shows only at moments, as a takeover, counts as present for so long. */
const shown_ms = 600_000;

type ProblemKind =
  | 'another_client'
  | 'too_large'
  | 'receive_maximum'
  | 'retain'
  | 'qos'
  | 'subscription'
  | 'presence'
  | 'undelivered'
  | 'large_packets'
  | 'credentials'
  | 'authorities'
  | 'rate'
  | 'other_broker'
  | 'moved'
  | 'redirect';

interface ProblemsLog {
  warn(facts: object, sentence: string): void;
}

interface Problem {
  readonly sentence: string;
  readonly until_ms: number;
}

export class Problems {
  readonly #now: () => number;
  readonly #log: ProblemsLog;
  readonly #present = new Map<ProblemKind, Problem>();

  constructor(now: () => number, log: ProblemsLog) {
    this.#now = now;
    this.#log = log;
  }

  /**
   * Notes a problem. `line` goes into the log when the problem is new; `sentence`, what is wrong and what to do, into the
   * state of the kit.
   */
  note(kind: ProblemKind, { sentence, line, facts = {}, lasts = 'until_cleared' }: ProblemNote): void {
    const known = this.#present.get(kind);
    const isNew = !known || known.until_ms < this.#now() || known.sentence !== sentence;
    this.#present.set(kind, {
      sentence,
      until_ms: lasts === 'until_cleared' ? Number.POSITIVE_INFINITY : this.#now() + shown_ms,
    });
    if (isNew) this.#log.warn(facts, line);
  }

  clear(...kinds: readonly ProblemKind[]): void {
    for (const kind of kinds) this.#present.delete(kind);
  }

  sentences(): readonly string[] {
    return [...this.#present.values()]
      .filter(({ until_ms }) => until_ms >= this.#now())
      .map(({ sentence }) => sentence);
  }
}

interface ProblemNote {
  readonly sentence: string;
  readonly line: string;
  readonly facts?: object;
  /** Left out: until it is cleared. */
  readonly lasts?: 'until_cleared' | 'for_a_while';
}

/** DISCONNECT "session taken over" of MQTT 5. */
export const session_taken_over = 0x8e;
/** MQTT 3.1.1 has no such code, and mosquitto 2.0.11 closes without it: so many connections that the broker ended soon after they began, within so long. */
const short_ms = 30_000;
const short_ends = 4;
const within_ms = 180_000;

export interface EndOfSession {
  readonly code: number | undefined;
  readonly held_ms: number;
  /** By the broker, in order: a link that breaks leaves a reset or silence. */
  readonly without_a_word: boolean;
}

/** Finds that another client uses the kit's id: the broker then ends each of the two sessions for the other one. */
export class Takeovers {
  readonly #now: () => number;
  readonly #problems: Pick<Problems, 'note'>;
  #ends_ms: readonly number[] = [];

  constructor(now: () => number, problems: Pick<Problems, 'note'>) {
    this.#now = now;
    this.#problems = problems;
  }

  ended({ code, held_ms, without_a_word }: EndOfSession): void {
    if (code === session_taken_over) {
      this.#problems.note('another_client', {
        sentence:
          'another client uses this kit_id at the broker: both keep losing the connection; find it and stop it, or give it its own kit_id',
        line: texts.another_client,
        facts: { code },
        lasts: 'for_a_while',
      });
      return;
    }
    if (!without_a_word || held_ms > short_ms) return;
    const now_ms = this.#now();
    this.#ends_ms = [...this.#ends_ms, now_ms].filter((ms) => now_ms - ms < within_ms).slice(-short_ends);
    if (this.#ends_ms.length < short_ends) return;
    this.#problems.note('another_client', {
      sentence:
        'broker ends the connection soon after each connect: perhaps another client uses this kit_id, or a message is forbidden; read the log of the broker',
      line: texts.short_connections,
      facts: { connections: short_ends },
      lasts: 'for_a_while',
    });
  }
}

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

/**
 * Finds kinds of topics that the broker accepts and drops. MQTT 3.1.1 has no refusal code, but the cloud's
 * acknowledgements show it: messages of other kinds that were sent later are stored, and these never are.
 */
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
  });
}

/** Losses with messages in flight, after which one is sent at a time. */
const losses_until_cautious = 2;
/** Messages in a row that are answered end the caution. */
const answers_to_trust = 16;
/** Answers of a connection, before a suspected kind is sent on it. A link that breaks now and then breaks among them. */
const answers_until_calm = 4;
/** Losses in a row during which the search continues with the shortest pauses between connections. */
const searched_losses_max = 12;
/** Messages that are suspected at once; the oldest is forgotten. */
const ids_max = 64;
/**
 * DISCONNECT codes about a packet: malformed, protocol error, topic name invalid, topic alias invalid, packet too large,
 * payload format invalid, retain or QoS not supported (MQTT 5 section 3.14.2.1).
 */
const codes_about_a_packet: ReadonlySet<number> = new Set([0x81, 0x82, 0x90, 0x94, 0x95, 0x99, 0x9a, 0x9b]);

/**
 * Finds a message that makes the broker hang up. Some brokers close the connection instead of refusing a message; sent again
 * first thing after every reconnect, it would block the queue permanently. A link that breaks looks the same, so a loss is held
 * against a message only as evidence: it was alone in flight, its kind of topic had been in flight alone at an earlier loss,
 * and the connection had answered several times before it was sent. What the evidence amounts to, the outbox decides.
 */
export class Suspicion {
  #losses = 0;
  #answers_in_a_row = 0;
  /** On this connection, of messages and pings. */
  #answers = 0;
  /** Kinds of topics that were in flight alone at a loss; the contract has few. */
  readonly #kinds = new Set<string>();
  /** Messages that were, whatever others of their kind have shown since. */
  readonly #ids = new Set<RowId>();

  /** One message at a time, until trust is back. */
  get cautious(): boolean {
    return this.#losses >= losses_until_cautious;
  }

  /** A culprit is looked for: the next connection should not wait long. */
  get isSearching(): boolean {
    return this.#losses > 0 && this.#losses <= searched_losses_max;
  }

  /** This connection has answered often enough for a loss to mean something. */
  get isCalm(): boolean {
    return this.#answers >= answers_until_calm;
  }

  /** This connection has carried a message, or the answer to a ping. */
  get hasAnswered(): boolean {
    return this.#answers > 0;
  }

  /** To be sent alone, and only once the connection is calm. */
  isolates(outgoing: OutgoingMessage): boolean {
    if (this.#kinds.size === 0 && this.#ids.size === 0) return false;
    return this.#kinds.has(channelKind(outgoing.channel)) || this.#ids.has(outgoingId(outgoing));
  }

  connected(): void {
    this.#answers = 0;
  }

  ponged(): void {
    this.#answers += 1;
  }

  /** The broker answered a message, with any code. */
  answered(outgoing: OutgoingMessage): void {
    this.#answers += 1;
    if (this.#ids.size > 0) this.#ids.delete(outgoingId(outgoing));
    if (this.#kinds.size > 0) this.#kinds.delete(channelKind(outgoing.channel));
    if (this.#losses === 0) return;
    this.#answers_in_a_row += 1;
    if (this.#answers_in_a_row >= answers_to_trust) this.#losses = 0;
  }

  /** The connection ended, not by us, while these were in flight. Returns the one against which that is evidence. */
  hungUp(
    in_flight: readonly OutgoingMessage[],
    disconnect_code: number | undefined,
  ): OutgoingMessage | undefined {
    const [only] = in_flight;
    if (!only) return undefined;
    this.#answers_in_a_row = 0;
    const isTold = disconnect_code !== undefined && codes_about_a_packet.has(disconnect_code);
    this.#losses = Math.max(this.#losses + 1, isTold ? losses_until_cautious : 0);
    if (in_flight.length > 1) return undefined;
    const isEvidence = isTold || (this.isolates(only) && this.isCalm);
    this.#kinds.add(channelKind(only.channel));
    this.#ids.add(outgoingId(only));
    const [oldest] = this.#ids.size > ids_max ? this.#ids : [];
    if (oldest !== undefined) this.#ids.delete(oldest);
    return isEvidence ? only : undefined;
  }
}
