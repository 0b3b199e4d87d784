/**
 * Tracks what the broker refuses by reason code. A wrong access rule or a quota concerns a kind of topic and not a single
 * message: the kind is paused and probed, and none of its messages is dropped. A single message is quarantined only on
 * evidence: it was refused repeatedly while others of its kind were accepted in between.
 */
import { channelKind } from '../../../contract/topics.ts';
import { KindPauses, type PauseLengths } from './kind-pauses.ts';
import { texts } from '../../texts.ts';
import type { RowId } from '../../row.ts';

/** Refusals in a row, none of the kind accepted in between, that pause it. */
const refusals_until_pause = 3;
/** Refusals of one message, each after others of its kind were accepted, that quarantine it. */
const strikes_max = 3;
/** Messages of a kind that are tracked at once; the oldest is discarded. */
const suspects_max = 64;
/** A probe that is due waits so long for a message that was not refused yet. */
const fresh_probe_ms = 2_000;

export interface RefusalTimes {
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
  /** Refused since one of the kind was accepted. */
  in_a_row: number;
  accepted: number;
  refused: number;
  last_refused_ms: number;
  is_logged: boolean;
}

/** A kind of topic that the broker refuses now, for the status. */
export interface RefusedKind {
  readonly kind: string;
  readonly code: number;
  readonly reason: string;
}

interface RefusalsLog {
  info(facts: object, sentence: string): void;
  warn(facts: object, sentence: string): void;
}

export class Refusals {
  readonly #pauses: KindPauses;
  readonly #episodes = new Map<string, Episode>();
  readonly #now: () => number;
  readonly #log: RefusalsLog;
  readonly #times: RefusalTimes;
  #suspects_held_until_ms = Number.NEGATIVE_INFINITY;

  constructor(now: () => number, log: RefusalsLog, times = times_default) {
    this.#pauses = new KindPauses(now, times.pauses);
    this.#times = times;
    this.#now = now;
    this.#log = log;
  }

  /** Whether the message may be sent now. A message that was refused before is a probe only when there is no other. */
  allows(channel: string, id: RowId): boolean {
    if (this.#episodes.size === 0) return true;
    const due_ms = this.#pauses.probeDue(channel);
    if (due_ms === undefined) return false;
    const isSuspect = this.#episodes.get(channelKind(channel))?.suspects.has(id) ?? false;
    const held_until_ms = Math.max(due_ms + fresh_probe_ms, this.#suspects_held_until_ms);
    if (isSuspect && this.#now() < held_until_ms) return false;
    return this.#pauses.allows(channel);
  }

  /** Whether the kind is paused; starts no probe. */
  rests(channel: string): boolean {
    return this.#pauses.rests(channel);
  }

  accepted(channel: string): void {
    if (this.#episodes.size === 0) return;
    const episode = this.#episodes.get(channelKind(channel));
    if (!episode) return;
    episode.accepted += 1;
    episode.in_a_row = 0;
    this.#pauses.resume(channel);
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
    this.#pauses.probeAll();
  }

  /** A new connection: messages that were refused before let others of their kind go first. */
  holdSuspects(): void {
    this.#suspects_held_until_ms = this.#now() + (this.#times.suspects_wait_ms ?? 0);
  }

  /** Ends episodes that are over. */
  tick(): void {
    for (const [kind, episode] of this.#episodes) {
      if (this.#pauses.has(kind) || this.#now() - episode.last_refused_ms < this.#times.calm_ms) continue;
      this.#episodes.delete(kind);
      if (!episode.is_logged) continue;
      const { refused, since_ms, code } = episode;
      const paused_s = Math.round((this.#now() - since_ms) / 1_000);
      this.#log.info({ kind, code, refused, paused_s }, texts.kind_accepted);
    }
  }

  kinds(): readonly RefusedKind[] {
    return [...this.#episodes]
      .filter(([, { is_logged }]) => is_logged)
      .map(([kind, { code, reason }]) => ({ kind, code, reason }));
  }

  #begin(kind: string, code: number, reason: string): Episode {
    const now_ms = this.#now();
    const counts = { in_a_row: 0, accepted: 0, refused: 0, last_refused_ms: now_ms, is_logged: false };
    const episode = { since_ms: now_ms, code, reason, suspects: new Map<RowId, Suspect>(), ...counts };
    this.#episodes.set(kind, episode);
    return episode;
  }

  #pause(channel: string, episode: Episode): void {
    this.#pauses.pause(channel);
    if (episode.is_logged) return;
    episode.is_logged = true;
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
