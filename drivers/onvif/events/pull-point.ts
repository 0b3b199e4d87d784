/** Pulls a camera's events (ONVIF Core, section 9.2): a session within that of the camera. */
import { serveDevice } from '../../../src/toolkit/device/device-session.ts';
import { subscription_retry } from '../../../src/toolkit/device/retry.ts';
import { sleep } from '../../../src/platform/time.ts';
import { call_deadline_ms, describe, isRefusedLogin, type Soap, type SoapOutcome } from '../soap/soap.ts';
import {
  type EventService,
  pull,
  renew,
  subscribe,
  type Subscription,
  synchronise,
  unsubscribe,
} from './subscription.ts';
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';
import { texts } from '../texts.ts';
import { untilAborted } from '../waiting.ts';
import { type XmlNode, all, attribute, find, textAt } from '../soap/xml.ts';

export interface EventListener extends EventService {
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
/** Refusals in a row after which pulling counts as unsupported; more where it worked before: the event service restarts. */
const refusals_max = 3;
const refusals_proven_max = 10;
const renew_share = 0.6;

/** A subscription was refused or lost; the camera itself may answer. */
class SubscriptionLost extends Error {
  /** Each attempt is a refused login, which cameras count. */
  readonly isLoginRefused: boolean;

  constructor(reason: string, isLoginRefused: boolean) {
    super(reason);
    this.isLoginRefused = isLoginRefused;
  }
}

/** A camera that answers refused too many pulls in a row. */
class PullRefused extends SubscriptionLost {}

/** How one way to receive events ended. */
export interface WayEnd {
  readonly reason: string;
  /** It had delivered before. */
  readonly hasWorked: boolean;
  /** The user lacks the right: each attempt is a refused login, which cameras count. */
  readonly isLoginRefused: boolean;
}

/**
 * Runs until the signal aborts. Resolves when the camera answers and cannot be pulled; throws DeviceUnreachable when it does
 * not answer at all.
 */
export async function pullEvents(listener: EventListener): Promise<WayEnd> {
  const { signal, onLost, expectAlive } = listener;
  const length = new PullLength(listener.pull_s);
  let refusals = 0;
  let hasWorked = false;
  const run = async (_signal: AbortSignal, onUp: () => void): Promise<void> => {
    const made = await subscribe(listener);
    refusals += 1;
    if ('kind' in made) throw new SubscriptionLost(describe(made), isRefusedLogin(made));
    const { reason, pulls, isLoginRefused } = await pullUntilLost(made, length, listener);
    if (pulls > 0) {
      refusals = 0;
      hasWorked = true;
      onUp();
    } else length.refused();
    throw new SubscriptionLost(reason, isLoginRefused);
  };
  const onFailure = async (error: unknown): Promise<void> => {
    if (!(error instanceof SubscriptionLost)) throw error;
    onLost(error.message);
    if (hasWorked && refusals === 0) listener.log.info({ reason: error.message }, texts.events_lost);
    await expectAlive();
    const { message, isLoginRefused } = error;
    const refusals_limit = hasWorked ? refusals_proven_max : refusals_max;
    if (isLoginRefused || refusals >= refusals_limit) throw new PullRefused(message, isLoginRefused);
  };
  try {
    await serveDevice({ signal, limits: subscription_retry, run, onFailure, onState: () => undefined });
    return { reason: 'stopped', hasWorked, isLoginRefused: false };
  } catch (error) {
    if (!(error instanceof PullRefused)) throw error;
    return { reason: error.message, hasWorked, isLoginRefused: error.isLoginRefused };
  }
}

async function pullUntilLost(subscription: Subscription, length: PullLength, listener: EventListener) {
  const { soap, signal, onEvents, onSubscribed, expectAlive } = listener;
  onSubscribed(async () => synchronise(soap, subscription));
  await synchronise(soap, subscription);
  let life: Life = { lifetime_s: subscription.lifetime_s, since_ms: performance.now() };
  let pulls = 0;
  let hasty = 0;
  let isCut = false;
  let reason = 'stopped';
  while (!signal.aborted) {
    const began_ms = performance.now();
    const seconds = Math.min(length.seconds(began_ms), Math.max(1, Math.floor(life.lifetime_s / 2)));
    const asked = pull(soap, subscription, seconds, seconds * 1_000 + pull_slack_ms);
    const outcome = await untilAborted(asked, signal);
    if (outcome === undefined) break;
    const took_ms = performance.now() - began_ms;
    if (outcome.kind !== 'reply') {
      reason = `event subscription lost: ${describe(outcome)}`;
      // Not even unsubscribed: each login that is refused counts.
      if (isRefusedLogin(outcome)) return { reason, pulls, isLoginRefused: true };
      if (isCut || isAtOnce(outcome, took_ms)) break;
      // The connection of this pull is lost, not the subscription, unless the next one fails, too.
      isCut = true;
      await expectAlive();
      length.cut(seconds, took_ms, began_ms);
      await synchronise(soap, subscription);
      continue;
    }
    isCut = false;
    pulls += 1;
    onEvents(outcome.body);
    length.answered(outcome.body, seconds, took_ms);
    life = await renewed(soap, subscription, life);
    hasty = took_ms < hasty_ms ? Math.min(hasty + 1, hasty_max) : 0;
    const pace_ms = messagesIn(outcome.body).length > 0 ? gap_ms * 2 ** hasty : empty_gap_ms - took_ms;
    if (pace_ms > 0) await sleep(pace_ms, signal);
  }
  // Cameras serve few subscriptions: a leftover may block the next one.
  await unsubscribe(listener, subscription);
  return { reason, pulls, isLoginRefused: false };
}

/** Refused without a wait, as where the subscription is unknown. */
function isAtOnce({ kind }: SoapOutcome, took_ms: number): boolean {
  return kind === 'fault' && took_ms < wait_min_ms;
}

interface Life {
  readonly lifetime_s: number;
  readonly since_ms: number;
}

/** Renews a subscription when it is time. */
async function renewed(soap: Soap, subscription: Subscription, life: Life): Promise<Life> {
  const now_ms = performance.now();
  if (now_ms - life.since_ms <= life.lifetime_s * 1_000 * renew_share) return life;
  return { ...life, ...(await renew(soap, subscription)), since_ms: now_ms };
}

// How long a camera may hold a pull (ONVIF Core, section 9.2): learnt from what becomes of the pulls.

const short_pull_s = 5;
/** A pull that fails sooner was not cut for its length. */
const wait_min_ms = 1_000;
/** Of the time after which a pull was cut. */
const cut_share = 0.6;
/** A shorter length is kept for this time: a single cut may have had another cause. */
const shorter_ms = 3_600_000;
/** Pulls of a camera that keeps events until the end of each. */
const late_pull_s = 2;
const late_min_ms = 1_500;
const late_max = 2;

export class PullLength {
  readonly #configured_s: number;
  #max_s: number;
  /** Replies in a row that were late with a change. */
  #late = 0;
  #shorter: { readonly seconds: number; readonly since_ms: number } | undefined;

  constructor(configured_s: number) {
    this.#configured_s = configured_s;
    this.#max_s = configured_s;
  }

  seconds(now_ms: number): number {
    if (this.#shorter && now_ms - this.#shorter.since_ms > shorter_ms) this.#shorter = undefined;
    return Math.max(1, Math.floor(Math.min(this.#shorter?.seconds ?? this.#max_s, this.#max_s)));
  }

  /** A pull of `asked_s` failed after `held_ms`: a Tapo closes idle connections after 10 s (agsh/onvif#314), routers drop them without a sign. */
  cut(asked_s: number, held_ms: number, now_ms: number): void {
    if (held_ms < wait_min_ms) return;
    const least_s = this.#shorter ? 1 : Math.min(short_pull_s, this.#configured_s);
    const seconds = Math.max(least_s, Math.min(asked_s, held_ms / 1_000) * cut_share);
    this.#shorter = { seconds, since_ms: now_ms };
  }

  /** The first pull may ask for a longer wait than the camera allows (ONVIF Core, MaxTimeout of PullMessagesFaultResponse). */
  refused(): void {
    this.#max_s = Math.min(this.#max_s, short_pull_s);
  }

  /** Some answer at the end of the time alone, with what happened long before. */
  answered(body: XmlNode, asked_s: number, took_ms: number): void {
    const ages_ms = agesOf(body).filter((ms) => ms <= asked_s * 1_000);
    if (ages_ms.length === 0) return;
    const isLate = took_ms > asked_s * 900 && Math.max(...ages_ms) > late_min_ms;
    this.#late = isLate ? this.#late + 1 : 0;
    if (this.#late >= late_max) this.#max_s = Math.min(this.#max_s, late_pull_s);
  }
}

/** How long before the reply its changes happened, by the clock of the camera. */
function agesOf(body: XmlNode): readonly number[] {
  const now_ms = Date.parse(textAt(find(body, 'pullMessagesResponse'), 'currentTime') ?? '');
  return messagesIn(body)
    .map((each) => find(each, 'message', 'message'))
    .filter((message) => attribute(message, 'propertyOperation') === 'Changed')
    .map((message) => now_ms - Date.parse(attribute(message, 'utcTime') ?? ''));
}

function messagesIn(body: XmlNode): readonly XmlNode[] {
  return all(find(body, 'pullMessagesResponse'), 'notificationMessage');
}
