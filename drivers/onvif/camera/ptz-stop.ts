/** Stops a moving camera, and checks whether it stands still. */
import type { OwedStops } from '../../../src/toolkit/device/owed-stops.ts';
import { DeviceUnreachable } from '../../../src/platform/errors.ts';
import { sleep } from '../../../src/platform/time.ts';
import { isMoving } from './media.ts';
import type { CameraMemory } from './remembered.ts';
import { call_deadline_ms, describe, operation, schema_namespace, type Soap } from '../soap/soap.ts';
import { escapeXml } from '../soap/xml.ts';

/** What moves: a profile of the PTZ service at this address. */
export interface Motor {
  readonly soap: Soap;
  readonly url: string;
  readonly profile: string;
  readonly axis: Axis;
}

/** Pan and tilt move together; the lens moves alone. */
export type Axis = 'pan_tilt' | 'zoom';

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

/** False once it stands still, true if it still moves after `ms`, undefined where the camera does not report it. */
export async function settled(parts: Motor, ms: number, signal: AbortSignal): Promise<boolean | undefined> {
  const { soap, url, profile, axis } = parts;
  const deadline_ms = performance.now() + ms;
  let moving: boolean | undefined;
  while (!signal.aborted) {
    const asked = operation('ptz', 'GetStatus', profileToken(profile));
    const outcome = await soap.call({ ...asked, url, deadline_ms: move_deadline_ms });
    moving = outcome.kind === 'reply' ? isMoving(outcome.body, axis) : undefined;
    if (moving !== true || performance.now() > deadline_ms) return moving;
    await sleep(check_every_ms, signal);
  }
  return moving;
}

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
