/** Receives a camera's events by pull or webhook; checks only that it answers where it supports neither. */
import type { DriverLog } from '../../../src/driver/driver.ts';
import { sleep } from '../../../src/platform/time.ts';
import type { Device } from '../camera/device.ts';
import { expectSameCamera, type KnownCamera } from '../camera/same-camera.ts';
import type { Detections } from './detections.ts';
import type { CameraOptions } from '../options.ts';
import { type EventListener, pullEvents } from './pull-point.ts';
import type { Soap } from '../soap/soap.ts';
import { texts } from '../texts.ts';
import { notesOf } from './topics.ts';
import { receiveCalls } from './webhook-events.ts';
import type { Webhook } from './webhook.ts';

export interface EventParts {
  readonly camera: CameraOptions;
  readonly pull_s: number;
  readonly soap: Soap;
  readonly device: Device & KnownCamera;
  readonly detections: Detections;
  readonly webhook: Webhook;
  readonly log: DriverLog;
  readonly signal: AbortSignal;
}

/** Time until a camera without events is asked again: a firmware update may have added them. */
const without_events_ms = 900_000;

/** Runs until the signal aborts; throws DeviceUnreachable when the camera does not answer any more. */
export async function receiveEvents(parts: EventParts): Promise<void> {
  const { camera, device, log, signal, soap, detections, pull_s } = parts;
  const url = device.services.get('events');
  const listener: EventListener = {
    soap,
    url: url ?? '',
    pull_s,
    signal,
    log: { info: (facts, sentence) => log.info({ camera: camera.name, ...facts }, sentence) },
    expectAlive: async () => expectSameCamera(soap, device),
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
