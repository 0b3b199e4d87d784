/** Receives a camera's events by pull or webhook; checks only that it answers where it supports neither. */
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';
import { fails, type Health, notOffered, works } from '../../../src/toolkit/driver/health.ts';
import { sleep } from '../../../src/platform/time.ts';
import type { Detections } from './detections.ts';
import type { CameraOptions } from '../options.ts';
import type { Limits } from '../limits.ts';
import { type EventListener, pullEvents, type WayEnd } from './pull-point.ts';
import { describe, isRefusedLogin, type ServiceName, type Soap } from '../soap/soap.ts';
import { texts } from '../texts.ts';
import { notesOf, type Reading } from './topics.ts';
import type { Webhook } from './webhook.ts';
import { readEnvelope } from '../soap/envelope.ts';
import {
  endKept,
  renew,
  subscribe,
  type SubscriptionMemory,
  synchronise,
  unsubscribe,
} from './subscription.ts';
import type { XmlNode } from '../soap/xml.ts';

interface EventDevice {
  /** Address of each service. */
  readonly services: ReadonlyMap<ServiceName, string>;
  /** Address of the gateway on this connection, for events that the camera sends. */
  readonly local_address: string | undefined;
  /** Why the address that it reported for a service is not used. */
  readonly unusable: ReadonlyMap<ServiceName, string>;
}

export interface EventParts {
  readonly camera: CameraOptions;
  readonly pull_s: number;
  readonly soap: Soap;
  readonly device: EventDevice;
  /** Throws DeviceUnreachable when the camera does not answer any more, or another one does. */
  readonly expectAlive: () => Promise<void>;
  /** How the topics of this camera are read. */
  readonly reading: Reading;
  /** Of each video source. */
  readonly detections: readonly Detections[];
  /** The messages of a reply, by the video source that they are about. */
  readonly divide: (body: XmlNode) => readonly (readonly [Detections, XmlNode])[];
  /** Whether events come now. */
  readonly onHealth: (health: Health) => void;
  readonly webhook: Webhook;
  readonly memory: SubscriptionMemory;
  readonly limits: Pick<Limits, 'events_again_ms' | 'events_seldom_ms'>;
  readonly log: DriverLog;
  readonly signal: AbortSignal;
}

/** What is detected outlives a loss for this time, in which the next subscription reports the states. */
const resubscription_ms = 10_000;

/** Runs until the signal aborts; throws DeviceUnreachable when the camera does not answer any more. */
export async function receiveEvents(parts: EventParts): Promise<void> {
  const {
    camera,
    device,
    log,
    signal,
    soap,
    detections,
    divide,
    reading,
    pull_s,
    expectAlive,
    memory,
    limits,
    onHealth,
  } = parts;
  const url = device.services.get('events');
  let logged: string | undefined;
  let failures = 0;
  let isDelivering = false;
  /** Since the subscription is lost; the reason of the first loss counts. */
  let lost: AbortController | undefined;
  const forgetLater = async (reason: string, found: AbortController): Promise<void> => {
    const ended = AbortSignal.any([signal, found.signal]);
    await sleep(resubscription_ms, ended);
    if (ended.aborted) return;
    for (const each of detections) each.forget(reason);
    lost = undefined;
  };
  const listener: EventListener = {
    soap,
    url: url ?? '',
    memory,
    pull_s,
    signal,
    log: { info: (facts, sentence) => log.info({ camera: camera.name, ...facts }, sentence) },
    expectAlive,
    onEvents(body) {
      if (logged !== undefined) log.info({ camera: camera.name }, texts.events_available);
      logged = undefined;
      failures = 0;
      isDelivering = true;
      onHealth(works);
      for (const [own, messages] of divide(body)) {
        const notes = notesOf(messages, reading);
        if (notes.length > 0) {
          // The camera reports its states again.
          lost?.abort();
          lost = undefined;
        }
        own.take(notes);
      }
    },
    onSubscribed(ask) {
      for (const each of detections) each.confirmWith(ask);
    },
    onLost(reason) {
      // Before the first event the other ways are tried.
      if (isDelivering) onHealth(fails(reason));
      if (lost) return;
      lost = new AbortController();
      void forgetLater(reason, lost);
    },
  };
  if (url !== undefined) await endKept(listener);
  while (!signal.aborted) {
    const { reason, isLoginRefused } =
      url === undefined
        ? { reason: device.unusable.get('events') ?? texts.no_event_service, isLoginRefused: false }
        : await tryWays(parts, listener);
    if (signal.aborted) return;
    if (reason !== logged) log.warn({ camera: camera.name, reason }, texts.events_unavailable);
    logged = reason;
    const soon_ms = isLoginRefused ? undefined : limits.events_again_ms[failures];
    const again_ms = soon_ms ?? limits.events_seldom_ms;
    onHealth(healthWithout(parts, { reason, isLoginRefused }, again_ms));
    await checkAlive(listener, again_ms);
    failures += 1;
  }
}

function healthWithout(
  { camera, device: { services, unusable } }: EventParts,
  { reason, isLoginRefused }: Pick<WayEnd, 'reason' | 'isLoginRefused'>,
  again_ms: number,
): Health {
  if (camera.events === 'off') return notOffered(reason);
  const remedy = isLoginRefused ? texts.rights_remedy : texts.events_remedy;
  if (services.has('events')) return fails(`${reason}; ${remedy}`, again_ms);
  return unusable.has('events') ? fails(reason, again_ms) : notOffered(reason);
}

/** Runs while one of the configured ways works; resolves with why none does, in the words of each. */
async function tryWays(
  { camera, webhook, device, onHealth }: EventParts,
  listener: EventListener,
): Promise<Pick<WayEnd, 'reason' | 'isLoginRefused'>> {
  const onSubscribed: EventListener['onSubscribed'] = (ask) => {
    listener.onSubscribed(ask);
    // Whether its calls arrive is known with the first one: some report no state when they are subscribed.
    onHealth({ state: 'works', reason: texts.not_called_yet });
  };
  const all_ways = [
    { name: 'pull', title: texts.pull_point, run: async () => pullEvents(listener) },
    {
      name: 'webhook',
      title: texts.webhook,
      run: async () => receiveCalls({ ...listener, onSubscribed }, webhook, device.local_address),
    },
  ];
  const ways = all_ways.filter(({ name }) => camera.events === 'auto' || camera.events === name);
  const [first] = ways;
  if (!first) return { reason: texts.events_off, isLoginRefused: false };
  const ends = new Map<string, WayEnd>();
  for (let turn = 0; ends.size < ways.length && !listener.signal.aborted; turn += 1) {
    const { run, title } = ways[turn % ways.length] ?? first;
    const end = await run();
    // What has worked and ended may work again when the other does not.
    if (end.hasWorked) ends.clear();
    else ends.set(title, end);
  }
  const reasons = [...ends].map(([title, { reason }]) => (ways.length > 1 ? `${title}: ${reason}` : reason));
  return {
    reason: reasons.join('; '),
    isLoginRefused: [...ends.values()].some(({ isLoginRefused }) => isLoginRefused),
  };
}

/** Without events, checks from time to time that the camera answers. */
async function checkAlive({ signal, pull_s, expectAlive }: EventListener, ms: number): Promise<void> {
  const end_ms = performance.now() + ms;
  while (!signal.aborted && performance.now() < end_ms) {
    await sleep(Math.min(pull_s * 1_000, end_ms - performance.now()), signal);
    if (!signal.aborted) await expectAlive();
  }
}

// Receives events of a camera by webhook, for cameras that cannot be pulled.

const renew_share = 0.6;

/**
 * Runs until the signal aborts. Resolves when the camera refuses or loses the subscription; throws DeviceUnreachable when it does
 * not answer any more.
 */
export async function receiveCalls(
  listener: EventListener,
  webhook: Webhook,
  local_address: string | undefined,
): Promise<WayEnd> {
  const { soap, signal, onEvents, onSubscribed, onLost, pull_s, expectAlive } = listener;
  let hasWorked = false;
  const hook = await webhook.open(async (xml) => {
    const reading = readEnvelope(xml);
    hasWorked ||= reading.kind === 'read';
    if (reading.kind === 'read') onEvents(reading.body);
    return Promise.resolve();
  });
  if (typeof hook === 'string') return { reason: hook, hasWorked, isLoginRefused: false };
  try {
    const made = await subscribe(listener, hook.url(local_address));
    if ('kind' in made) {
      onLost(describe(made));
      await expectAlive();
      return { reason: describe(made), hasWorked, isLoginRefused: isRefusedLogin(made) };
    }
    try {
      onSubscribed(async () => synchronise(soap, made));
      await synchronise(soap, made);
      let renewed_ms = performance.now();
      while (!signal.aborted) {
        await sleep(Math.min(pull_s, made.lifetime_s * renew_share) * 1_000, signal);
        if (signal.aborted) break;
        await expectAlive();
        if (performance.now() - renewed_ms < made.lifetime_s * renew_share * 500) continue;
        const renewal = await renew(soap, made);
        if ('refused' in renewal) {
          onLost(texts.subscription_lost);
          return { reason: texts.not_renewed(renewal.refused), hasWorked, isLoginRefused: false };
        }
        renewed_ms = performance.now();
      }
    } finally {
      await unsubscribe(listener, made);
    }
    return { reason: 'stopped', hasWorked, isLoginRefused: false };
  } finally {
    hook.close();
  }
}
