/** What may be sent now: kinds of topics without subscribers, or that the broker refuses, are paused and probed. */
import type { Lane } from '../../../contract/lanes.ts';
import { outgoingId, type OutgoingMessage } from './outgoing.ts';
import type { RowId } from '../row.ts';
import { channelKind } from '../../../contract/topics.ts';
import { backoff } from '../../../platform/time.ts';
import { texts } from '../texts.ts';

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
  acknowledged({ channel, lane, retain }: OutgoingMessage, hasSubscribers: boolean): boolean {
    this.#refusals.accepted(channel);
    this.#hangups.accepted(channel);
    if (hasSubscribers || retain) this.#no_subscribers.found(channel);
    else this.#no_subscribers.missing(channel, lane);
    return hasSubscribers || retain;
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
    return this.#no_subscribers.withoutSubscribers(keeps);
  }

  refusedKinds(): readonly RefusedKind[] {
    return [...this.#refusals.kinds(), ...this.#hangups.kinds()];
  }
}

interface PauseLengths {
  readonly first_ms: number;
  readonly max_ms: number;
}

const lengths_default: PauseLengths = { first_ms: 1_000, max_ms: 30_000 };

/** A kind of topic is not sent for now: after a growing pause, one message of the kind is let through as a probe. */
class Pause {
  readonly #now: () => number;
  readonly #lengths: Iterator<number, never>;
  #until_ms = 0;

  constructor(now: () => number, { first_ms, max_ms }: PauseLengths) {
    this.#now = now;
    this.#lengths = backoff(first_ms, max_ms);
    this.#lengthen();
  }

  /** Since when a probe is due, or will be. */
  get until_ms(): number {
    return this.#until_ms;
  }

  get isOn(): boolean {
    return this.#now() < this.#until_ms;
  }

  /** Whether a message may be sent now: the first that asks after the pause is the probe. */
  allows(): boolean {
    if (this.isOn) return false;
    this.#lengthen();
    return true;
  }

  /** The probe may be sent now; the pauses after it are as long as before. */
  end(): void {
    this.#until_ms = this.#now();
  }

  #lengthen(): void {
    this.#until_ms = this.#now() + this.#lengths.next().value;
  }
}

/** A kind without subscribers, and the lanes of the messages that were kept; a batch may be of any. */
interface Unheard {
  readonly pause: Pause;
  readonly lanes: Set<Lane>;
}

/**
 * Tracks kinds of channels without subscribers. After PUBACK 0x10 (no matching subscribers) the message is kept, its kind
 * of channel is paused, and one message probes from time to time whether there are subscribers by then.
 */
export class NoSubscribers {
  readonly #now: () => number;
  readonly #kinds = new Map<string, Unheard>();

  constructor(now: () => number) {
    this.#now = now;
  }

  allows(channel: string): boolean {
    return this.#of(channel)?.pause.allows() ?? true;
  }

  /** Whether the kind is paused; starts no probe. */
  rests(channel: string): boolean {
    return this.#of(channel)?.pause.isOn ?? false;
  }

  found(channel: string): void {
    if (this.#kinds.size > 0) this.#kinds.delete(channelKind(channel));
  }

  missing(channel: string, lane: Lane): void {
    const known = this.#of(channel);
    if (known) known.lanes.add(lane);
    else {
      const pause = new Pause(this.#now, lengths_default);
      this.#kinds.set(channelKind(channel), { pause, lanes: new Set([lane]) });
    }
  }

  /** A new connection may have other subscribers: every kind is probed at once. */
  reset(): void {
    this.#kinds.clear();
  }

  /**
   * Kinds of channels without subscribers, for the status: sorted, so that a reconnect, which finds them in another order, is no
   * other reason for a degraded kit. Where its lanes keep nothing any more, since all left in batches, no
   * message of a kind probes: whether it has subscribers by then is unknown.
   */
  withoutSubscribers(keeps: (lane: Lane) => boolean): readonly string[] {
    return [...this.#kinds]
      .filter(([, { lanes }]) => [...lanes].some(keeps))
      .map(([kind]) => kind)
      .toSorted();
  }

  #of(channel: string): Unheard | undefined {
    return this.#kinds.size > 0 ? this.#kinds.get(channelKind(channel)) : undefined;
  }
}

/** Refusals in a row, none of the kind accepted in between, that pause it. */
const refusals_until_pause = 3;
/** Refusals of one message, each after others of its kind were accepted, that quarantine it. */
const strikes_max = 3;
/** Messages of a kind that are tracked at once; the oldest is discarded. */
const suspects_max = 64;
/** A probe that is due waits so long for a message that was not refused yet. */
const fresh_probe_ms = 2_000;

interface RefusalTimes {
  /** Without a refusal for so long, an episode is over. */
  readonly calm_ms: number;
  /** Left out: the same as for kinds without subscribers. */
  readonly pauses?: PauseLengths;
  /** At a new connection, messages that were refused before wait so long for others of their kind. Left out: not at all. */
  readonly suspects_wait_ms?: number;
}

const times_default: RefusalTimes = { calm_ms: 5_000 };

interface Suspect {
  strikes: number;
  /** Messages of the kind that had been accepted at its last strike. */
  accepted: number;
}

interface Episode {
  readonly since_ms: number;
  readonly code: number;
  readonly reason: string;
  readonly suspects: Map<RowId, Suspect>;
  pause: Pause | undefined;
  /** Refused since one of the kind was accepted. */
  in_a_row: number;
  accepted: number;
  refused: number;
  last_refused_ms: number;
  isLogged: boolean;
}

/** A kind of topic that the broker refuses now, for the status. */
export interface RefusedKind {
  readonly kind: string;
  readonly code: number;
  readonly reason: string;
}

/**
 * Tracks what the broker refuses by reason code. A wrong access rule or a quota concerns a kind of topic and not a single
 * message: the kind is paused and probed, and none of its messages is dropped. A single message is quarantined only on
 * evidence: it was refused repeatedly while others of its kind were accepted in between.
 */
export class Refusals {
  readonly #episodes = new Map<string, Episode>();
  readonly #now: () => number;
  readonly #log: GateLog;
  readonly #times: RefusalTimes;
  #suspects_held_until_ms = Number.NEGATIVE_INFINITY;

  constructor(now: () => number, log: GateLog, times = times_default) {
    this.#times = times;
    this.#now = now;
    this.#log = log;
  }

  /** Whether the message may be sent now. A message that was refused before is a probe only when there is no other. */
  allows(channel: string, id: RowId): boolean {
    const { pause, suspects } = this.#of(channel) ?? {};
    if (pause?.isOn) return false;
    const probe_ms = (pause?.until_ms ?? Number.NEGATIVE_INFINITY) + fresh_probe_ms;
    const held_until_ms = Math.max(probe_ms, this.#suspects_held_until_ms);
    if (suspects?.has(id) && this.#now() < held_until_ms) return false;
    return pause?.allows() ?? true;
  }

  /** Whether the kind is paused; starts no probe. */
  rests(channel: string): boolean {
    return this.#of(channel)?.pause?.isOn ?? false;
  }

  accepted(channel: string): void {
    const episode = this.#of(channel);
    if (!episode) return;
    episode.accepted += 1;
    episode.in_a_row = 0;
    episode.pause = undefined;
  }

  /** Returns whether the message itself is at fault; else it is to be sent again later. */
  refused(channel: string, id: RowId, code: number, reason: string): 'message' | 'kind' {
    const kind = channelKind(channel);
    const episode = this.#episodes.get(kind) ?? this.#begin(kind, code, reason);
    episode.refused += 1;
    episode.in_a_row += 1;
    episode.last_refused_ms = this.#now();
    if (strike(episode, id)) return 'message';
    if (episode.in_a_row >= refusals_until_pause) this.#pause(channel, episode);
    return 'kind';
  }

  /** A new connection may have other rights: every paused kind is probed at once. */
  reset(): void {
    for (const { pause } of this.#episodes.values()) pause?.end();
  }

  /** A new connection: messages that were refused before let others of their kind go first. */
  holdSuspects(): void {
    this.#suspects_held_until_ms = this.#now() + (this.#times.suspects_wait_ms ?? 0);
  }

  /** Ends episodes that are over. */
  tick(): void {
    for (const [kind, episode] of this.#episodes) {
      if (episode.pause || this.#now() - episode.last_refused_ms < this.#times.calm_ms) continue;
      this.#episodes.delete(kind);
      if (!episode.isLogged) continue;
      const { refused, since_ms, code } = episode;
      const paused_s = Math.round((this.#now() - since_ms) / 1_000);
      this.#log.info({ kind, code, refused, paused_s }, texts.kind_accepted);
    }
  }

  kinds(): readonly RefusedKind[] {
    return [...this.#episodes]
      .filter(([, { isLogged }]) => isLogged)
      .map(([kind, { code, reason }]) => ({ kind, code, reason }));
  }

  #of(channel: string): Episode | undefined {
    return this.#episodes.size > 0 ? this.#episodes.get(channelKind(channel)) : undefined;
  }

  #begin(kind: string, code: number, reason: string): Episode {
    const now_ms = this.#now();
    const counts = { in_a_row: 0, accepted: 0, refused: 0, last_refused_ms: now_ms, isLogged: false };
    const suspects = new Map<RowId, Suspect>();
    const episode: Episode = { since_ms: now_ms, code, reason, suspects, pause: undefined, ...counts };
    this.#episodes.set(kind, episode);
    return episode;
  }

  #pause(channel: string, episode: Episode): void {
    episode.pause ??= new Pause(this.#now, this.#times.pauses ?? lengths_default);
    if (episode.isLogged) return;
    episode.isLogged = true;
    const { code, reason, refused } = episode;
    this.#log.warn({ kind: channelKind(channel), code, reason, refused }, texts.kind_refused);
  }
}

/** True when there is enough evidence against the message. */
function strike({ suspects, accepted }: Episode, id: RowId): boolean {
  const known = suspects.get(id);
  const isEvidence = known !== undefined && accepted > known.accepted;
  const strikes = known === undefined ? 1 : known.strikes + (isEvidence ? 1 : 0);
  suspects.delete(id);
  if (strikes >= strikes_max) return true;
  suspects.set(id, { strikes, accepted });
  const [oldest] = suspects.size > suspects_max ? suspects.keys() : [];
  if (oldest !== undefined) suspects.delete(oldest);
  return false;
}
