/**
 * Keeps a session to a broker: connects, with the other version of MQTT where the first is not accepted, and connects again
 * after every failure and every loss, with pauses that grow and are spread at random.
 */
import { backoff, sleep } from '../platform/time.ts';
import type { ProtocolVersion } from './broker.ts';
import { ConnectFailed } from './connect-failed.ts';
import type { Session } from './session.ts';

export interface RetrySpans {
  readonly first_ms: number;
  readonly max_ms: number;
}

/** Between attempts of kits, of which thousands may lose one broker at the same moment. */
export const kit_retry: RetrySpans = { first_ms: 4_000, max_ms: 60_000 };
/** Between attempts of the service. */
export const service_retry: RetrySpans = { first_ms: 500, max_ms: 30_000 };
/** No attempt follows another one sooner. */
const pause_min_ms = 200;

/** The pauses start again at the shortest only after a session has held for so long. */
export const stable_after_ms = 60_000;

/** A broker may be upgraded to MQTT 5: the next connection after this time tries it again. */
const try_5_again_ms = 3_600_000;
/** CONNACK "unsupported protocol version", in MQTT 5 and in 3.1.1. */
const unsupported_version: ReadonlySet<number> = new Set([0x84, 1]);

export interface ReconnectOptions {
  /** Of the broker that the attempt is made at. */
  readonly protocol: () => ProtocolChoice;
  readonly retry: RetrySpans;
  /** Monotonic time. */
  readonly now: () => number;
  /** From 0 to 1: spreads the attempts of many clients. */
  readonly random: () => number;
  /** One attempt. Rejects with `ConnectFailed`. */
  readonly open: (protocol: ProtocolVersion, signal: AbortSignal) => Promise<Session>;
  /**
   * Uses a session until it has ended; ends it when `signal` aborts. `soon`: the next pause is one of the shortest;
   * `at_once`: there is none.
   */
  readonly serve: (session: Session, signal: AbortSignal) => Promise<'at_once' | 'soon' | 'later'>;
  /** Aborts when another attempt may succeed where this one does not: the pause or the attempt ends, the next begins. */
  readonly hurry?: () => AbortSignal | undefined;
  readonly onAttempt: () => void;
  /**
   * An attempt failed. `isOtherVersionDue`: the next one follows at once, with the other version of MQTT. Returns `at_once` where the
   * next one is at another broker.
   */
  readonly onFailed: (error: unknown, how: { readonly isOtherVersionDue: boolean }) => 'at_once' | 'later';
  /** The longest that the next pause may be; left out: no limit. */
  readonly pauseMax_ms?: () => number;
  readonly onPause?: (pause_ms: number) => void;
}

/** Runs until `signal` aborts and the session has ended. */
export async function keepConnected(options: ReconnectOptions, signal: AbortSignal): Promise<void> {
  const { random, retry, onPause, pauseMax_ms = () => Infinity } = options;
  let pauses = retryPauses(retry, random);
  while (!signal.aborted) {
    const next = await connectAndServe(options, signal);
    if (next === 'soon') pauses = retryPauses(retry, random);
    if (next === 'at_once' || signal.aborted) continue;
    const pause_ms = Math.min(pauses.next().value, pauseMax_ms());
    onPause?.(pause_ms);
    const hurry = options.hurry?.();
    await sleep(pause_ms, hurry === undefined ? signal : AbortSignal.any([signal, hurry]));
    if (hurry?.aborted) pauses = retryPauses(retry, random);
  }
}

/**
 * Yields the pause before each attempt, spread over the whole of its span: thousands of kits that lose one broker at the same moment
 * do not reconnect in the same second.
 */
export function retryPauses(
  { first_ms, max_ms }: RetrySpans,
  random: () => number,
): Generator<number, never> {
  return backoff(first_ms, max_ms, random, pause_min_ms);
}

/** One attempt and, if it succeeds, its session; returns when the next attempt is due. */
async function connectAndServe(
  { now, open, serve, hurry, onAttempt, onFailed, protocol: protocolNow }: ReconnectOptions,
  signal: AbortSignal,
): Promise<'at_once' | 'soon' | 'later'> {
  onAttempt();
  const protocol = protocolNow();
  let session: Session;
  const hurried = hurry?.();
  const stop = hurried === undefined ? signal : AbortSignal.any([signal, hurried]);
  try {
    session = await open(protocol.next(), stop);
  } catch (error) {
    if (signal.aborted) return 'later';
    if (hurried?.aborted) return 'at_once';
    const isOtherVersionDue = error instanceof ConnectFailed && protocol.failed(error);
    const next = onFailed(error, { isOtherVersionDue });
    return isOtherVersionDue ? 'at_once' : next;
  }
  protocol.connected();
  const from_ms = now();
  const next = await serve(session, signal);
  return next !== 'at_once' && now() - from_ms > stable_after_ms ? 'soon' : next;
}

/**
 * Chooses the version of MQTT. With `auto`, MQTT 5 comes first and 3.1.1 where a broker refuses it; some brokers do so by
 * closing the connection, or by not answering, instead of by a code.
 */
export class ProtocolChoice {
  readonly #setting: 'auto' | ProtocolVersion;
  readonly #now: () => number;
  #version: ProtocolVersion;
  /** 3.1.1 is tried on suspicion, and has not been answered yet. */
  #is_trial = false;
  #failed_5_ms = 0;
  /** What has accepted MQTT 5 and does not answer starts again, or a proxy before it ends connections (chirpstack-network-server#183). */
  #trusted_until_ms = Number.NEGATIVE_INFINITY;

  constructor(setting: 'auto' | ProtocolVersion, now: () => number) {
    this.#setting = setting;
    this.#now = now;
    this.#version = setting === '3.1.1' ? '3.1.1' : '5';
  }

  /** The version for the next attempt. */
  next(): ProtocolVersion {
    const is_time = this.#now() - this.#failed_5_ms > try_5_again_ms;
    if (this.#setting === 'auto' && !this.#is_trial && is_time) this.#version = '5';
    return this.#version;
  }

  connected(): void {
    this.#is_trial = false;
    if (this.#version === '5') this.#trusted_until_ms = Number.POSITIVE_INFINITY;
  }

  /** Learns from a failed attempt. True: the other version should be tried at once. */
  failed({ stage, code }: Pick<ConnectFailed, 'stage' | 'code'>): boolean {
    if (this.#setting !== 'auto') return false;
    const isUnsupported = code !== undefined && unsupported_version.has(code);
    const is_unanswered = stage === 'closed' || stage === 'silent';
    if (this.#version === '5') {
      if (!isUnsupported && (!is_unanswered || this.#isTrusted())) return false;
      this.#failed_5_ms = this.#now();
      this.#version = '3.1.1';
      this.#is_trial = is_unanswered;
      return true;
    }
    if (isUnsupported || (this.#is_trial && stage !== 'refused')) this.#version = '5';
    this.#is_trial = false;
    return false;
  }

  /** For an hour after it stopped answering; then another broker may have its address. */
  #isTrusted(): boolean {
    this.#trusted_until_ms = Math.min(this.#trusted_until_ms, this.#now() + try_5_again_ms);
    return this.#now() < this.#trusted_until_ms;
  }
}
