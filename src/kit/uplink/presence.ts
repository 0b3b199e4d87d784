/**
 * The kit's state message: birth, will and farewell of each connection, and again while connected when its data has
 * changed. It stands outside the outbox; its `seq` counts connections (`contract/presence.ts`).
 */
import { writeEnvelope } from '../../contract/envelope.ts';
import type { JsonObject } from '../../contract/json.ts';
import { connection_lost, deathSeq, stateSeq } from '../../contract/presence.ts';
import { channels, downFilter, downFilters, upTopic } from '../../contract/topics.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Outgoing, Session } from '../../mqtt/session.ts';
import { codeInWords, reasonOf } from '../../mqtt/codes.ts';
import { within } from '../../platform/time.ts';
import type { Problems } from './problems.ts';
import { texts } from './texts.ts';

/** Between two states of one connection: when `name` or `degraded` changes or the cloud asks, and when the buffer does. */
const again_after_ms = 10_000;
const depth_again_after_ms = 60_000;

/** Data of the state message, as far as this file reads it. */
export type StateData = JsonObject & {
  readonly name?: string | null | undefined;
  readonly degraded?: readonly string[];
  readonly outbox?: { readonly rows: number };
};

interface PresenceOptions {
  readonly kit_id: string;
  readonly epoch: () => number;
  readonly clock: Pick<Clock, 'stamp'>;
  readonly state: (how: { readonly online: boolean; readonly reason: string | null }) => StateData;
  readonly now: () => number;
}

export class Presence {
  readonly #options: PresenceOptions;
  #connection = 0;
  #states = 0;
  #epoch = 0;
  #is_requested = false;
  /** The farewell was the last state of this connection. */
  #is_over = false;
  /** The largest payload that the broker accepts; beyond it the faults are left out. */
  #bytes_max = Number.POSITIVE_INFINITY;
  /** What the last state of this connection said, and when. */
  #last = { said: '', decade: 0, at_ms: 0 };

  constructor(options: PresenceOptions) {
    this.#options = options;
  }

  /** Begins the next connection; returns its will. `compact`: without the faults of the kit. */
  will({ compact, retain }: { readonly compact: boolean; readonly retain: boolean }): Outgoing {
    this.#connection += 1;
    this.#states = 0;
    this.#is_over = false;
    this.#epoch = this.#options.epoch();
    this.#bytes_max = compact ? 0 : Number.POSITIVE_INFINITY;
    const will = this.#message(deathSeq(this.#connection), { online: false, reason: connection_lost });
    return { ...will, retain };
  }

  /** `bytes_max`: of its payload. */
  birth(bytes_max: number): Outgoing {
    this.#bytes_max = bytes_max;
    return this.#next();
  }

  /** No other state may follow: the broker would keep that one. */
  farewell(reason: string): Outgoing {
    this.#is_over = true;
    return this.#message(deathSeq(this.#connection), { online: false, reason });
  }

  /** The cloud asks for the state: it is due as soon as the last one is old enough. */
  ask(): void {
    this.#is_requested = true;
  }

  /** The outbox began an epoch meanwhile. The will has the old one and would count as stale: only a new connection helps. */
  get isOutdated(): boolean {
    return this.#epoch !== this.#options.epoch();
  }

  /** The state, if it is to be published again now. */
  due(): Outgoing | undefined {
    const age_ms = this.#options.now() - this.#last.at_ms;
    if (this.#is_over || age_ms < again_after_ms) return undefined;
    const { said, decade } = digest(this.#options.state({ online: true, reason: null }));
    const is_other_depth = decade !== this.#last.decade && age_ms >= depth_again_after_ms;
    if (!this.#is_requested && said === this.#last.said && !is_other_depth) return undefined;
    return this.#next();
  }

  #next(): Outgoing {
    this.#states += 1;
    this.#is_requested = false;
    const how = { online: true, reason: null };
    this.#last = { ...digest(this.#options.state(how)), at_ms: this.#options.now() };
    return this.#message(stateSeq(this.#connection, this.#states), how);
  }

  #message(seq: number, how: { readonly online: boolean; readonly reason: string | null }): Outgoing {
    const { kit_id, clock, state } = this.#options;
    const { time_ms, synced } = clock.stamp();
    const observed = {
      time_ms,
      epoch: this.#epoch,
      seq,
      ...(!synced && { time_quality: 'unsynced' as const }),
    };
    const data = state(how);
    const whole = writeEnvelope(observed, JSON.stringify(data));
    const isSmall = Buffer.byteLength(whole) <= this.#bytes_max;
    const payload = isSmall ? whole : writeEnvelope(observed, JSON.stringify(withoutFaults(data)));
    return { topic: upTopic(kit_id, channels.state), payload, retain: true };
  }
}

/** What makes a state news. The depth of the buffer counts by its power of ten. */
function digest({ name, degraded, outbox }: StateData): { readonly said: string; readonly decade: number } {
  return {
    said: JSON.stringify([name ?? null, degraded ?? []]),
    decade: Math.ceil(Math.log10((outbox?.rows ?? 0) + 1)),
  };
}

function withoutFaults(data: StateData): StateData {
  const { length } = data.degraded ?? [];
  return length === 0
    ? data
    : { ...data, degraded: [`${length} faults; the broker's packet limit is too small to list them`] };
}

interface IntroductionOptions {
  readonly kit_id: string;
  /** Publishes the birth; resolves with the code of the answer. */
  readonly publishBirth: () => Promise<number>;
  readonly timeout_ms: number;
  /** Whether to end the subscription to everything that kits before contract 1.1 left in their session. */
  readonly drops_old_filter: boolean;
  readonly problems: Problems;
}

/**
 * What a connection begins with: the subscriptions and the birth, before anything else is sent.
 * Rejects when the connection ends, the broker does not answer or `signal` aborts. Refusals are noted, and the kit continues
 * without.
 */
export async function introduce(
  session: Session,
  options: IntroductionOptions,
  signal: AbortSignal,
): Promise<void> {
  const { kit_id, publishBirth, timeout_ms, drops_old_filter, problems } = options;
  const introduced = (async () => {
    // A dispatch must never be retained: with `rap` one shows also when it is published while the kit is connected.
    noteRefused(await session.subscribe(downFilters(kit_id), { rap: true }), problems);
    if (session.session_present && drops_old_filter) await session.unsubscribe(downFilter(kit_id));
    noteBirth(await publishBirth(), upTopic(kit_id, channels.state), problems);
    return true;
  })();
  const done = await within(timeout_ms, introduced, signal);
  signal.throwIfAborted();
  if (!done) throw new Error('the broker accepted the connection and did not answer');
}

/** A kit that cannot be commanded still sends what it has. */
export function noteRefused(refused: ReadonlyMap<string, number>, problems: Problems): void {
  const [first] = refused;
  if (!first) {
    problems.clear('subscription');
    return;
  }
  const [topic, code] = first;
  const reason = codeInWords(code);
  problems.note('subscription', {
    sentence: `broker refuses the subscription to ${topic} (${reason}): tasks or settings of the cloud do not arrive; ${reasonOf(code).remedy}`,
    line: texts.subscription_refused,
    facts: { topics: [...refused.keys()], reason },
  });
}

/** Notes whether the broker took the birth. */
export function noteBirth(code: number, topic: string, problems: Problems): void {
  if (code < 0x80) {
    problems.clear('presence');
    return;
  }
  const reason = codeInWords(code);
  problems.note('presence', {
    sentence: `broker refuses ${topic} (${reason}): the cloud does not see this kit online; ${reasonOf(code).remedy}`,
    line: texts.presence_refused,
    facts: { topic, reason },
  });
}
