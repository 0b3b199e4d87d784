/** Pulls a camera's events (ONVIF Core, section 9.2): a session within that of the camera. */
import { serveDevice } from '../../../src/toolkit/device/device-session.ts';
import { subscription_retry } from '../../../src/toolkit/device/retry.ts';
import { sleep } from '../../../src/platform/time.ts';
import { call_deadline_ms, describe, type Soap } from '../soap/soap.ts';
import type { SoapOutcome } from '../soap/soap.ts';
import { pull, renew, subscribe, type Subscription, synchronise, unsubscribe } from './subscription.ts';
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';
import { texts } from '../texts.ts';
import { untilAborted } from '../waiting.ts';
import type { XmlNode } from '../soap/xml.ts';

export interface EventListener {
  readonly soap: Soap;
  /** Of the event service. */
  readonly url: string;
  readonly pull_s: number;
  readonly signal: AbortSignal;
  readonly log: Pick<DriverLog, 'info'>;
  /** Rejects when the camera does not answer at all, or when another one answers in its place. */
  readonly expectAlive: () => Promise<void>;
  /** Content of one reply; may be empty. */
  readonly onEvents: (body: XmlNode) => void;
  /** The subscription sends the state of all properties; `ask` requests it again. */
  readonly onSubscribed: (ask: () => Promise<void>) => void;
  /** The subscription is lost; the state is unknown. */
  readonly onLost: (reason: string) => void;
}

/** Margin for the answer after the time that the camera may wait for an event. */
export const pull_slack_ms = call_deadline_ms;
/** Pauses after a pull with and without events: some cameras always answer at once. */
const gap_ms = 50;
const empty_gap_ms = 1_000;
/** A camera that always answers at once is pulled less and less often, down to every 1.6 s. */
const hasty_ms = 100;
const hasty_max = 5;
const short_pull_s = 5;
/** Refusals in a row after which pulling counts as unsupported; more where it worked before: the event service restarts. */
const refusals_max = 3;
const refusals_proven_max = 10;
const renew_share = 0.6;

/** A subscription was refused or lost; the camera itself may answer. */
class SubscriptionLost extends Error {}

/** A camera that answers refused too many pulls in a row. */
class PullRefused extends Error {}

/**
 * Runs until the signal aborts. Resolves with the reason when the camera answers and cannot be pulled; throws
 * DeviceUnreachable when it does not answer at all.
 */
export async function pullEvents(listener: EventListener): Promise<string> {
  const { soap, url, signal, onLost, expectAlive } = listener;
  let { pull_s } = listener;
  let refusals = 0;
  let isProven = false;
  const run = async (_signal: AbortSignal, onUp: () => void): Promise<void> => {
    const made = await subscribe(soap, url);
    refusals += 1;
    if ('kind' in made) throw new SubscriptionLost(describe(made));
    const { reason, pulls } = await pullUntilLost(made, { ...listener, pull_s });
    if (pulls > 0) {
      refusals = 0;
      isProven = true;
      onUp();
    } else {
      // The first pull may ask for a longer wait than the camera allows (ONVIF Core, MaxTimeout of PullMessagesFaultResponse).
      pull_s = Math.min(pull_s, short_pull_s);
    }
    throw new SubscriptionLost(reason);
  };
  const onFailure = async (error: unknown): Promise<void> => {
    if (!(error instanceof SubscriptionLost)) throw error;
    onLost(error.message);
    if (isProven && refusals === 0) listener.log.info({ reason: error.message }, texts.events_lost);
    await expectAlive();
    if (refusals >= (isProven ? refusals_proven_max : refusals_max)) throw new PullRefused(error.message);
  };
  try {
    await serveDevice({ signal, limits: subscription_retry, run, onFailure, onState: () => undefined });
    return 'stopped';
  } catch (error) {
    if (error instanceof PullRefused) return error.message;
    throw error;
  }
}

async function pullUntilLost(subscription: Subscription, listener: EventListener) {
  const { soap, signal, onEvents, onSubscribed } = listener;
  onSubscribed(async () => synchronise(soap, subscription));
  await synchronise(soap, subscription);
  let lifetime_s = subscription.lifetime_s;
  let renewed_ms = performance.now();
  let pulls = 0;
  let hasty = 0;
  let reason = 'stopped';
  while (!signal.aborted) {
    const begin_ms = performance.now();
    const outcome = await pullOnce(subscription, listener, lifetime_s);
    if (outcome === undefined) break;
    if (outcome.kind !== 'reply') {
      reason = `event subscription lost: ${describe(outcome)}`;
      break;
    }
    pulls += 1;
    onEvents(outcome.body);
    if (performance.now() - renewed_ms > lifetime_s * 1_000 * renew_share) {
      lifetime_s = (await renew(soap, subscription)) ?? lifetime_s;
      renewed_ms = performance.now();
    }
    const took_ms = performance.now() - begin_ms;
    hasty = took_ms < hasty_ms ? Math.min(hasty + 1, hasty_max) : 0;
    const pace_ms = hasMessages(outcome.body) ? gap_ms * 2 ** hasty : empty_gap_ms - took_ms;
    if (pace_ms > 0) await sleep(pace_ms, signal);
  }
  // Cameras serve few subscriptions: a leftover may block the next one.
  await unsubscribe(soap, subscription);
  return { reason, pulls };
}

/** Pulls once; undefined when the signal aborts before the answer. */
async function pullOnce(
  subscription: Subscription,
  { soap, pull_s, signal }: EventListener,
  lifetime_s: number,
): Promise<SoapOutcome | undefined> {
  const seconds = Math.max(1, Math.floor(Math.min(pull_s, lifetime_s / 2)));
  return untilAborted(pull(soap, subscription, seconds, seconds * 1_000 + pull_slack_ms), signal);
}

function hasMessages(body: XmlNode): boolean {
  const response = body.children['pullmessagesresponse']?.[0];
  return (response?.children['notificationmessage']?.length ?? 0) > 0;
}
