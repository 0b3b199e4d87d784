/** Checks that the camera of a connection still answers: another one may have taken its address meanwhile. */
import { DeviceUnreachable } from '../../../src/errors.ts';
import { expectReply, operation, type Soap } from '../soap/soap.ts';
import { texts } from '../texts.ts';
import type { Device } from './device.ts';
import { informationOf, macKey, macOf } from './identity.ts';

export type KnownCamera = Pick<Device, 'information' | 'mac'> & { readonly asset_key: string };

/**
 * Throws DeviceUnreachable when the camera does not answer at all or another one answers, and DeviceRejected when it
 * rejects the login.
 */
export async function expectSameCamera(soap: Soap, known: KnownCamera): Promise<void> {
  const outcome = await soap.call(operation('device', 'GetDeviceInformation'));
  const isRefused = outcome.kind === 'fault' && outcome.code === 'NotAuthorized';
  // Any other refusal is an answer too, and an interrupted call is no statement about the camera.
  const isAnswer = outcome.kind !== 'failure' || outcome.why === 'interrupted' || outcome.why === 'malformed';
  if (isRefused || !isAnswer) expectReply(outcome, texts.connection_lost);
  if (outcome.kind !== 'reply') return;
  const now = informationOf(outcome.body);
  // A camera that is still booting may leave some of it out.
  const isOther = (['manufacturer', 'model', 'serial'] as const).some(
    (field) => now[field] !== null && now[field] !== known.information[field],
  );
  if (isOther || !(await hasSameMac(soap, known))) throw new DeviceUnreachable(texts.other_camera_answers);
}

/** Asked only where the serial number does not identify the camera. */
async function hasSameMac(soap: Soap, { asset_key, mac }: KnownCamera): Promise<boolean> {
  if (mac === undefined || asset_key !== macKey(mac)) return true;
  const outcome = await soap.call(operation('device', 'GetNetworkInterfaces'));
  return outcome.kind !== 'reply' || (macOf(outcome.body) ?? mac) === mac;
}
