/** Stops a moving camera, and checks whether it stands still. */
import type { OwedStops } from '../../../src/toolkit/device/owed-stops.ts';
import { DeviceUnreachable } from '../../../src/platform/errors.ts';
import { sleep } from '../../../src/platform/time.ts';
import { call_deadline_ms, describe, operation, schema_namespace, type Soap } from '../soap/soap.ts';
import { escapeXml, find, textAt, truth, type XmlNode } from '../soap/xml.ts';
import { untilAborted } from '../waiting.ts';
import { z } from 'zod';
import { DeviceMemory } from '../../../src/toolkit/device/device-memory.ts';
import { nameRecord } from '../../../src/toolkit/device/device-name.ts';
import { loginRecord } from '../../../src/toolkit/device/login-guard.ts';
import { stateFileName } from '../../../src/toolkit/device/state-file.ts';
import type { FeedSet } from '../../../src/contract/feeds.ts';
import type { DriverHost } from '../../../src/toolkit/driver/driver.ts';
import { type CameraOptions, portOf, sources_max } from '../options.ts';

/** What moves: a profile of the PTZ service at this address. */
export interface Motor {
  readonly soap: Soap;
  readonly url: string;
  readonly profile: string;
  readonly axis: Axis;
}

/** Pan and tilt move together; the lens moves alone, or on the way to a position together with them. */
export type Axis = 'pan_tilt' | 'zoom' | 'all';

/** What an owed Stop is kept under: the profile, marked for the lens by a character that no token has. */
export function motorKey({ profile, axis }: Pick<Motor, 'profile' | 'axis'>): string {
  return axis === 'zoom' ? `${profile}${zoom_mark}` : profile;
}
const zoom_mark = '\nzoom';

export const move_deadline_ms = 3_000;
const stop_deadline_ms = 1_200;
/** How often the driver checks for the end of a movement. */
const check_every_ms = 200;

/** Sends the Stops that an earlier run or connection owes. Rejects when the camera confirms none. */
export async function settleStops(
  soap: Soap,
  owed: OwedStops<string>,
  { facts: { ptz_url } }: { readonly facts: Pick<CameraMemory['facts'], 'ptz_url'> },
): Promise<void> {
  await owed.settle(async (key) => {
    const isZoom = key.endsWith(zoom_mark);
    const profile = isZoom ? key.slice(0, -zoom_mark.length) : key;
    const motor = { soap, profile, axis: isZoom ? 'zoom' : 'pan_tilt' } as const;
    // A camera that takes its time must be able to confirm it.
    const refusal =
      ptz_url === undefined ? undefined : await stop({ ...motor, url: ptz_url }, call_deadline_ms);
    if (refusal !== undefined) throw new DeviceUnreachable(refusal);
    if (ptz_url !== undefined) await sendStill({ ...motor, url: ptz_url }, call_deadline_ms);
    await owed.confirm(key);
  });
}

/** Sends Stop, else velocity 0, else Stop again; returns the reason when the camera accepts none. */
export async function stop(parts: Motor, deadline_ms = stop_deadline_ms): Promise<string | undefined> {
  const flags = '<PanTilt>true</PanTilt><Zoom>true</Zoom>';
  const { profile, url, soap } = parts;
  const halt = { ...operation('ptz', 'Stop', `${profileToken(profile)}${flags}`), url };
  const plain = { ...operation('ptz', 'Stop', profileToken(profile)), url };
  let refusal = '';
  for (const asked of [halt, continuousMove(parts, [0, 0], ''), plain]) {
    const outcome = await soap.call({ ...asked, deadline_ms });
    if (outcome.kind === 'reply') return undefined;
    refusal = describe(outcome);
  }
  return refusal;
}

/** Of cameras that accept Stop without an effect (fjramirez1987/PTZ-YCC365#11, mnit-rtmc/iris#177). Some refuse it, which says nothing. */
export async function sendStill(parts: Motor, deadline_ms = stop_deadline_ms): Promise<void> {
  await parts.soap.call({ ...continuousMove(parts, [0, 0], ''), deadline_ms });
}

/** Whether a standstill is the end; `wasMoving`: an earlier answer said that it moves. */
export type HasArrived = (status: XmlNode | undefined, wasMoving: boolean) => boolean;

/**
 * False once it stands still, true if it still moves after `ms`, undefined where the camera does not report it, or when the signal
 * aborts: some hold the answer until the movement ends (onvif/testspecs#132).
 */
export async function settled(
  { soap, url, profile, axis }: Motor,
  ms: number,
  signal: AbortSignal,
  hasArrived: HasArrived = () => true,
): Promise<boolean | undefined> {
  const end_ms = performance.now() + ms;
  let wasMoving = false;
  while (!signal.aborted) {
    const deadline_ms = Math.max(move_deadline_ms, end_ms - performance.now());
    const status = await readStatus({ soap, url, profile }, deadline_ms, signal);
    const moving = isMoving(status, axis);
    const isEnd = moving === undefined || (!moving && hasArrived(status, wasMoving));
    if (!signal.aborted && (isEnd || performance.now() > end_ms)) return moving;
    wasMoving ||= moving === true;
    await sleep(check_every_ms, signal);
  }
  return undefined;
}

export async function readStatus(
  { soap, url, profile }: Pick<Motor, 'soap' | 'url' | 'profile'>,
  deadline_ms: number,
  signal: AbortSignal,
): Promise<XmlNode | undefined> {
  const asked = operation('ptz', 'GetStatus', profileToken(profile));
  const outcome = await untilAborted(soap.call({ ...asked, url, deadline_ms, signal }), signal);
  return outcome?.kind === 'reply' ? find(outcome.body, 'getStatusResponse', 'ptzStatus') : undefined;
}

/** Undefined where the camera does not report it. */
function isMoving(status: XmlNode | undefined, axis: Axis): boolean | undefined {
  const reported = axis_names[axis]
    .map((part) => textAt(status, 'moveStatus', part))
    .filter((text) => text !== undefined && !/^unknown$/iu.test(text));
  if (reported.length === 0) return undefined;
  return reported.some((text) => /^moving$/iu.test(text ?? '') || truth(text) === true);
}
const axis_names = { pan_tilt: ['panTilt'], zoom: ['zoom'], all: ['panTilt', 'zoom'] } as const;

/** Of a velocity from -1 to 1; the second part counts for pan and tilt only. */
export function continuousMove(
  { profile, url, axis }: Motor,
  [x, y]: readonly [number, number],
  timeout: string,
) {
  const tt = `xmlns="${schema_namespace}"`;
  const vector = axis === 'zoom' ? `<Zoom ${tt} x="${x}"/>` : `<PanTilt ${tt} x="${x}" y="${y}"/>`;
  const inner = `${profileToken(profile)}<Velocity>${vector}</Velocity>${timeout}`;
  return { ...operation('ptz', 'ContinuousMove', inner), url, deadline_ms: move_deadline_ms };
}

export function profileToken(profile: string): string {
  return `<ProfileToken>${escapeXml(profile)}</ProfileToken>`;
}

// State of one camera that is kept over restarts.

const cameraMemory = z.object({
  /** Profiles with a pending Stop. */
  owed_stops: z.array(z.string().max(256)).catch([]),
  /** Of the PTZ service, for the pending Stops of a camera whose services are not read yet. */
  ptz_url: z.string().max(2_048).optional(),
  /** Hardware address of the camera that the entry is bound to. */
  mac: z.string().max(32).optional().catch(undefined),
  /** Subscription to its events, which the next start ends unless this one did. */
  subscription: z
    .object({ address: z.string().max(2_048), parameters: z.string().max(16_384) })
    .optional()
    .catch(undefined),
  /** Video sources in the order in which they were first seen: the first one has the key of the device. */
  sources: z.array(z.string().max(256)).max(sources_max).catch([]),
  ...loginRecord,
  ...nameRecord,
  /** How the accepted credentials were sent. */
  login_way: z.enum(['ws_security', 'gateway_clock', 'digest']).optional().catch(undefined),
});
export type CameraMemory = DeviceMemory<typeof cameraMemory>;

export async function openMemory(
  { stateFile, log }: Pick<DriverHost<FeedSet>, 'stateFile' | 'log'>,
  camera: CameraOptions,
): Promise<CameraMemory> {
  const file = stateFileName('camera', `${camera.host.toLowerCase()} ${portOf(camera)} ${camera.path}`);
  return DeviceMemory.open(stateFile(file), cameraMemory, log);
}
