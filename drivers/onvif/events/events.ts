/** Receives a camera's events by pull or webhook; checks only that it answers where it supports neither. */
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';
import { sleep } from '../../../src/platform/time.ts';
import type { Detections } from './detections.ts';
import type { CameraOptions } from '../options.ts';
import { type EventListener, pullEvents } from './pull-point.ts';
import { describe, type ServiceName, type Soap } from '../soap/soap.ts';
import { texts } from '../texts.ts';
import { notesOf } from './topics.ts';
import type { Webhook } from './webhook.ts';
import { readEnvelope } from '../soap/envelope.ts';
import { renew, subscribe, synchronise, unsubscribe } from './subscription.ts';

interface EventDevice {
  /** Address of each service. */
  readonly services: ReadonlyMap<ServiceName, string>;
  /** Address of the gateway on this connection, for events that the camera sends. */
  readonly local_address: string | undefined;
}

export interface EventParts {
  readonly camera: CameraOptions;
  readonly pull_s: number;
  readonly soap: Soap;
  readonly device: EventDevice;
  /** Throws DeviceUnreachable when the camera does not answer any more, or another one does. */
  readonly expectAlive: () => Promise<void>;
  readonly detections: Detections;
  readonly webhook: Webhook;
  readonly log: DriverLog;
  readonly signal: AbortSignal;
}

/** Time until a camera without events is asked again: a firmware update may have added them. */
const without_events_ms = 900_000;

/** Runs until the signal aborts; throws DeviceUnreachable when the camera does not answer any more. */
export async function receiveEvents(parts: EventParts): Promise<void> {
  const { camera, device, log, signal, soap, detections, pull_s, expectAlive } = parts;
  const url = device.services.get('events');
  const listener: EventListener = {
    soap,
    url: url ?? '',
    pull_s,
    signal,
    log: { info: (facts, sentence) => log.info({ camera: camera.name, ...facts }, sentence) },
    expectAlive,
    onEvents: (body) => detections.take(notesOf(body)),
    onSubscribed: (ask) => detections.confirmWith(ask),
    onLost: (reason) => detections.forget(reason),
  };
  let isLogged = false;
  while (!signal.aborted) {
    const reason = url === undefined ? texts.no_event_service : await tryWays(parts, listener);
    if (signal.aborted) return;
    if (!isLogged) log.warn({ camera: camera.name, reason }, texts.events_unavailable);
    isLogged = true;
    await checkAlive(listener);
  }
}

/** Runs while one of the configured ways works; resolves with why none does. */
async function tryWays({ camera, webhook, device }: EventParts, listener: EventListener): Promise<string> {
  const wanted = camera.events;
  let reason: string = texts.events_off;
  if (wanted === 'auto' || wanted === 'pull') reason = await pullEvents(listener);
  if (listener.signal.aborted) return reason;
  if (wanted === 'auto' || wanted === 'webhook') {
    reason = await receiveCalls(listener, webhook, device.local_address);
  }
  return reason;
}

/** Without events, checks from time to time that the camera answers. */
async function checkAlive({ signal, pull_s, expectAlive }: EventListener): Promise<void> {
  const end_ms = performance.now() + without_events_ms;
  while (!signal.aborted && performance.now() < end_ms) {
    await sleep(pull_s * 1_000, signal);
    if (!signal.aborted) await expectAlive();
  }
}

// Receives events of a camera by webhook, for cameras that cannot be pulled.

const renew_share = 0.6;

/**
 * Runs until the signal aborts. Resolves with the reason when the camera refuses or loses the subscription;
 * throws DeviceUnreachable when it does not answer any more.
 */
export async function receiveCalls(
  listener: EventListener,
  webhook: Webhook,
  local_address: string | undefined,
): Promise<string> {
  const { soap, url, signal, onEvents, onSubscribed, onLost, pull_s, expectAlive } = listener;
  const hook = await webhook.open(async (xml) => {
    const reading = readEnvelope(xml);
    if (reading.kind === 'read') onEvents(reading.body);
    return Promise.resolve();
  });
  if (typeof hook === 'string') return hook;
  try {
    const made = await subscribe(soap, url, hook.url(local_address));
    if ('kind' in made) {
      onLost(describe(made));
      await expectAlive();
      return describe(made);
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
        if ((await renew(soap, made)) === undefined) {
          onLost(texts.subscription_lost);
          return texts.not_renewed;
        }
        renewed_ms = performance.now();
      }
    } finally {
      await unsubscribe(soap, made);
    }
    return 'stopped';
  } finally {
    hook.close();
  }
}
