/** What may be sent now: kinds of topics without subscribers, or that the broker refuses, are paused and probed. */
import type { Lane } from '../../../contract/lanes.ts';
import { NoSubscribers } from './no-subscribers.ts';
import { outgoingId, type OutgoingMessage } from '../outgoing.ts';
import { Refusals, type RefusedKind } from './refusals.ts';
import type { RowId } from '../../row.ts';

/** Each probe of a kind that makes the broker disconnect costs a connection. */
const hangup_times = {
  calm_ms: 3_600_000,
  pauses: { first_ms: 15_000, max_ms: 3_600_000 },
  suspects_wait_ms: 3_000,
} as const;
/** MQTT 5 section 2.4: unspecified error. */
const unspecified_error = 0x80;

interface GateLog {
  info(facts: object, sentence: string): void;
  warn(facts: object, sentence: string): void;
}

export class Gate {
  readonly #no_subscribers: NoSubscribers;
  readonly #refusals: Refusals;
  readonly #hangups: Refusals;

  constructor(now: () => number, log: GateLog) {
    this.#no_subscribers = new NoSubscribers(now);
    this.#refusals = new Refusals(now, log);
    this.#hangups = new Refusals(now, log, hangup_times);
  }

  /** `kept`: the broker keeps it for subscribers that come later. The first call after a pause is the probe. */
  allows(channel: string, id: RowId, kept: boolean): boolean {
    return (
      (kept || this.#no_subscribers.allows(channel)) &&
      this.#refusals.allows(channel, id) &&
      this.#hangups.allows(channel, id)
    );
  }

  /** Whether the kind of this channel is paused; starts no probe. */
  rests(channel: string): boolean {
    return this.#no_subscribers.rests(channel) || this.isRefused(channel);
  }

  /** Whether the broker refuses this kind. */
  isRefused(channel: string): boolean {
    return this.#refusals.rests(channel) || this.#hangups.rests(channel);
  }

  /** Returns whether the message counts as delivered: without subscribers only if the broker retains it. */
  acknowledged({ channel, lane, retain }: OutgoingMessage, has_subscribers: boolean): boolean {
    this.#refusals.accepted(channel);
    this.#hangups.accepted(channel);
    if (has_subscribers || retain) this.#no_subscribers.found(channel);
    else this.#no_subscribers.missing(channel, lane);
    return has_subscribers || retain;
  }

  /** Returns whether the message itself is at fault, or its kind of topic. */
  refused(outgoing: OutgoingMessage, code: number, reason: string): 'message' | 'kind' {
    return this.#refusals.refused(outgoing.channel, outgoingId(outgoing), code, reason);
  }

  /** The broker closed the connection when this was sent alone. Returns the same as `refused`. */
  hungUp(outgoing: OutgoingMessage, reason: string): 'message' | 'kind' {
    return this.#hangups.refused(outgoing.channel, outgoingId(outgoing), unspecified_error, reason);
  }

  /** A new connection may have other subscribers and other rights. */
  connected(): void {
    this.#no_subscribers.reset();
    this.#refusals.reset();
    this.#hangups.holdSuspects();
  }

  tick(): void {
    this.#refusals.tick();
    this.#hangups.tick();
  }

  /** Kinds of topics without subscribers, as far as their lanes keep messages. */
  withoutSubscribers(keeps: (lane: Lane) => boolean): readonly string[] {
    return this.#no_subscribers.kinds(keeps);
  }

  refusedKinds(): readonly RefusedKind[] {
    return [...this.#refusals.kinds(), ...this.#hangups.kinds()];
  }
}
