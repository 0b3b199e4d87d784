/** Hears a camera's events by pulling (ONVIF Core, section 9.2): our own loop, with a pace, back-off and an end. */
import { backoff, sleep } from '../../src/platform/time.ts';
import { describe, expectReply, operation, type Soap, StalledCamera } from './soap.ts';
import type { SoapOutcome } from './soap-call.ts';
import { pull, renew, subscribe, type Subscription, synchronise, unsubscribe } from './subscription.ts';
import { untilAborted } from './waiting.ts';
import type { XmlNode } from './xml.ts';

export interface EventListener {
  readonly soap: Soap;
  /** Of the event service. */
  readonly url: string;
  readonly pull_s: number;
  readonly signal: AbortSignal;
  /** What came with one reply; may hold nothing of interest. */
  readonly onEvents: (body: XmlNode) => void;
  /** The state of all properties is being sent: `ask` asks for it again. */
  readonly onSubscribed: (ask: () => Promise<void>) => void;
  /** From now on nothing is known. */
  readonly onLost: (reason: string) => void;
}

/** Room for the answer beyond the time that the camera may wait for an event. */
export const pull_slack_ms = 5_000;
/** Between two pulls that brought something, and two that did not: some cameras answer at once, always. */
const gap_ms = 50;
const empty_gap_ms = 1_000;
/** A camera that always has something to say at once is asked less and less often, down to every 1.6 s. */
const hasty_ms = 100;
const hasty_max = 5;
const short_pull_s = 5;
const retry_first_ms = 1_000;
const retry_max_ms = 60_000;
/** Refusals in a row after which a camera counts as one that cannot be pulled. */
const refusals_max = 3;
const renew_share = 0.6;
const liveness_deadline_ms = 5_000;

/**
 * Runs until the signal aborts. Resolves with the reason when the camera cannot be pulled though it lives; throws
 * DeviceUnreachable when it does not answer at all.
 */
export async function pullEvents(listener: EventListener): Promise<string> {
  const { soap, url, signal, onLost } = listener;
  let pauses = backoff(retry_first_ms, retry_max_ms);
  let { pull_s } = listener;
  for (let refusals = 0; !signal.aborted;) {
    const made = await subscribe(soap, url);
    let reason: string;
    if ('kind' in made) {
      reason = describe(made);
      refusals += 1;
    } else {
      const heard = await pullUntilLost(made, { ...listener, pull_s });
      reason = heard.reason;
      refusals = heard.pulls > 0 ? 0 : refusals + 1;
      // The first pull may ask for more patience than the camera has (ONVIF Core, MaxTimeout of PullMessagesFaultResponse).
      if (heard.pulls === 0) pull_s = Math.min(pull_s, short_pull_s);
      // Some cameras end every subscription after seconds: one that brought an answer was a good one.
      if (heard.pulls > 0) pauses = backoff(retry_first_ms, retry_max_ms);
    }
    if (signal.aborted) break;
    onLost(reason);
    await expectAlive(soap);
    if (refusals >= refusals_max) return reason;
    await sleep(pauses.next().value, signal);
  }
  return 'stopped';
}

/** Throws DeviceUnreachable when the camera does not answer at all, and DeviceRejected when our login is not good any more. */
export async function expectAlive(soap: Soap): Promise<void> {
  const asked = { ...operation('device', 'GetDeviceInformation'), deadline_ms: liveness_deadline_ms };
  const outcome = await soap.call(asked);
  const isRefused = outcome.kind === 'fault' && outcome.code === 'NotAuthorized';
  // Any other refusal is an answer too, and an interrupted call says nothing about the camera.
  const isAnswer = outcome.kind !== 'failure' || outcome.why === 'interrupted' || outcome.why === 'malformed';
  if (isRefused || !isAnswer) expectReply(outcome, 'the camera does not serve us any more');
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
      reason = `its events are lost: ${describe(outcome)}`;
      if (outcome.kind === 'failure' && outcome.why === 'stalled') throw new StalledCamera(describe(outcome));
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
  // Cameras serve few subscriptions: one that is left behind may keep the next one out.
  await unsubscribe(soap, subscription);
  return { reason, pulls };
}

/** One pull, given up at once when the signal aborts; once more when other cameras kept its reply from being read. */
async function pullOnce(
  subscription: Subscription,
  { soap, pull_s, signal }: EventListener,
  lifetime_s: number,
): Promise<SoapOutcome | undefined> {
  const seconds = Math.max(1, Math.floor(Math.min(pull_s, lifetime_s / 2)));
  for (let attempt = 0; ; attempt += 1) {
    const asked = pull(soap, subscription, seconds, seconds * 1_000 + pull_slack_ms);
    const outcome = await untilAborted(asked, signal);
    const isInterrupted = outcome?.kind === 'failure' && outcome.why === 'interrupted';
    if (!isInterrupted || attempt > 0) return outcome;
  }
}

function hasMessages(body: XmlNode): boolean {
  const response = body.children['pullmessagesresponse']?.[0];
  return (response?.children['notificationmessage']?.length ?? 0) > 0;
}
