/**
 * Keeps a session to a broker: connects, with the other version of MQTT where the first is not accepted, and connects again
 * after every failure and every loss, with pauses that grow and are spread at random.
 */
import { sleep } from '../platform/time.ts';
import type { BrokerOptions, ProtocolVersion } from './broker.ts';
import { ConnectFailed } from './connect-failed.ts';
import { ProtocolChoice } from './protocol-choice.ts';
import { retryPauses, type RetrySpans } from './retry.ts';
import type { Session } from './session.ts';

/** The pauses start again at the shortest only after a session has held for so long. */
const stable_after_ms = 60_000;

export interface ReconnectOptions {
  readonly protocol: BrokerOptions['protocol'];
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
  readonly onAttempt?: () => void;
  /** An attempt failed. `isOtherVersionDue`: the next one follows at once, with the other version of MQTT. */
  readonly onFailed: (error: unknown, how: { readonly isOtherVersionDue: boolean }) => void;
  readonly onPause?: (pause_ms: number) => void;
}

/** Runs until `signal` aborts and the session has ended. */
export async function keepConnected(options: ReconnectOptions, signal: AbortSignal): Promise<void> {
  const { now, random, retry, onPause } = options;
  const protocol = new ProtocolChoice(options.protocol, now);
  let pauses = retryPauses(retry, random);
  while (!signal.aborted) {
    const next = await connectAndServe(options, protocol, signal);
    if (next === 'soon') pauses = retryPauses(retry, random);
    if (next === 'at_once' || signal.aborted) continue;
    const pause_ms = pauses.next().value;
    onPause?.(pause_ms);
    const hurry = options.hurry?.();
    await sleep(pause_ms, hurry === undefined ? signal : AbortSignal.any([signal, hurry]));
    if (hurry?.aborted) pauses = retryPauses(retry, random);
  }
}

/** One attempt and, if it succeeds, its session; returns when the next attempt is due. */
async function connectAndServe(
  { now, open, serve, hurry, onAttempt, onFailed }: ReconnectOptions,
  protocol: ProtocolChoice,
  signal: AbortSignal,
): Promise<'at_once' | 'soon' | 'later'> {
  onAttempt?.();
  let session: Session;
  const hurried = hurry?.();
  const stop = hurried === undefined ? signal : AbortSignal.any([signal, hurried]);
  try {
    session = await open(protocol.next(), stop);
  } catch (error) {
    if (signal.aborted) return 'later';
    if (hurried?.aborted) return 'at_once';
    const isOtherVersionDue = error instanceof ConnectFailed && protocol.failed(error);
    onFailed(error, { isOtherVersionDue });
    return isOtherVersionDue ? 'at_once' : 'later';
  }
  protocol.connected();
  const from_ms = now();
  const next = await serve(session, signal);
  return next !== 'at_once' && now() - from_ms > stable_after_ms ? 'soon' : next;
}
