/** Reads what a camera is: login, services, identity, profiles. */
import type { TakePicture } from '../../../src/toolkit/driver/driver.ts';
import type { DeviceStream } from '../../../src/toolkit/driver/stream-login.ts';
import {
  addressesOf,
  cameraKeys,
  type CameraNetwork,
  type DeviceInformation,
  informationOf,
  macKey,
  macOf,
} from './identity.ts';
import { type Media, pictureOf, readProfiles, readStream, streamProfile, type Unread } from './media.ts';
import type { CameraOptions } from '../options.ts';
import { DeviceUnreachable } from '../../../src/platform/errors.ts';
import { type LoginOptions, passLogin } from '../soap/login.ts';
import { expectReply, namespaces, operation, reachable, type ServiceName, type Soap } from '../soap/soap.ts';
import { all, find, textAt, type XmlNode } from '../soap/xml.ts';
import { texts } from '../texts.ts';

export interface Device {
  /** Possible identities, the best first. */
  readonly asset_keys: readonly [string, ...string[]];
  readonly mac: string | undefined;
  readonly information: DeviceInformation;
  /** Address of each service. */
  readonly services: ReadonlyMap<ServiceName, string>;
  /** Token of the profile that pans and tilts; undefined for a fixed camera. */
  readonly ptz_profile: string | undefined;
  readonly stream: DeviceStream | undefined;
  readonly takePicture: TakePicture | undefined;
  /** Why the camera did not list its profiles, without which it has no stream and no movement. */
  readonly profiles_unread: Unread | undefined;
  readonly stream_unread: Unread | undefined;
  /** Address of the gateway on this connection, for events that the camera sends. */
  readonly local_address: string | undefined;
}

/** Answer to the login. */
export type LoggedIn = Pick<Device, 'information' | 'local_address'>;

/** Reads the description of the camera. Throws DeviceUnreachable when it does not answer. */
export async function readDevice(
  soap: Soap,
  { information, local_address }: LoggedIn,
  options: CameraOptions,
): Promise<Device> {
  const services = await readServices(soap);
  const network = await readNetwork(soap);
  const asset_keys = cameraKeys(information, network, options.identity);
  const read = await readProfiles(soap, services);
  const media = read && 'profiles' in read ? read : undefined;
  const ptz = services.has('ptz') ? media?.profiles.find(({ hasPtz }) => hasPtz) : undefined;
  const reported = media && (await readStream(soap, services.get(media.service), media));
  const takePicture = await readPicture(soap, services, media);
  const ptz_profile = ptz?.token;
  const isUnread = reported !== undefined && 'fault' in reported;
  const found = {
    services,
    ptz_profile,
    stream: isUnread ? undefined : reported,
    takePicture,
    profiles_unread: read && 'fault' in read ? read : undefined,
    stream_unread: isUnread ? reported : undefined,
  };
  return { asset_keys, mac: network.mac, information, ...found, local_address };
}

/** Resolves with whether everything that may still come is read now. */
export async function isComplete(soap: Soap, { services }: Device): Promise<boolean> {
  const media = await readProfiles(soap, services);
  if (!media || 'fault' in media) return false;
  const stream = await readStream(soap, services.get(media.service), media);
  return stream === undefined || !('fault' in stream);
}

/** Pictures have the size of the stream: those of a sub stream are small. */
async function readPicture(
  soap: Soap,
  services: ReadonlyMap<ServiceName, string>,
  media: Media | undefined,
): Promise<TakePicture | undefined> {
  const profile = streamProfile(media?.profiles ?? [])?.token;
  const url = media && services.get(media.service);
  if (!media || profile === undefined || url === undefined) return undefined;
  return pictureOf({ soap, service: media.service, url, profile });
}

/** Throws DeviceUnreachable when the camera does not answer, and LoginRefused when it refuses the login. */
export async function logIn(soap: Soap, options: LoginOptions): Promise<LoggedIn> {
  const { body, local_address } = await passLogin(soap, options);
  return { information: informationOf(body), local_address };
}

/** Reads GetServices, else GetCapabilities of older devices; both where the first lacks services that the second may list. */
async function readServices(soap: Soap): Promise<ReadonlyMap<ServiceName, string>> {
  const services = new Map<ServiceName, string>();
  const asked = operation('device', 'GetServices', '<IncludeCapability>false</IncludeCapability>');
  const modern = await soap.call(asked);
  if (modern.kind === 'reply') addServices(services, modern.body, soap);
  const hasMedia = services.has('media') || services.has('media2');
  if (hasMedia && services.has('ptz') && services.has('events')) return services;
  const old = await soap.call(operation('device', 'GetCapabilities', '<Category>All</Category>'));
  // A device with the device service alone is accepted.
  const isKnown = services.size > 1 || (old.kind === 'fault' && modern.kind === 'reply');
  if (old.kind === 'reply' || !isKnown) {
    addCapabilities(services, expectReply(old, 'GetCapabilities').body, soap);
  }
  return services;
}

function addServices(services: Map<ServiceName, string>, body: XmlNode, soap: Soap): void {
  for (const service of all(find(body, 'getServicesResponse'), 'service')) {
    const namespace = textAt(service, 'namespace')?.replace(/\/$/u, '');
    const name = serviceNames.find((each) => namespaces[each] === namespace);
    const address = textAt(service, 'xaddr');
    if (name && address !== undefined) addService(services, name, address, soap);
  }
}

function addCapabilities(services: Map<ServiceName, string>, body: XmlNode, soap: Soap): void {
  const capabilities = find(body, 'getCapabilitiesResponse', 'capabilities');
  for (const name of serviceNames) {
    const address = textAt(capabilities, name, 'xaddr');
    if (address !== undefined && !services.has(name)) addService(services, name, address, soap);
  }
}

function addService(
  services: Map<ServiceName, string>,
  name: ServiceName,
  address: string,
  soap: Soap,
): void {
  const url = reachable(address, soap.connection);
  if (url !== undefined) services.set(name, url);
}

const serviceNames: readonly ServiceName[] = ['device', 'media', 'media2', 'ptz', 'events'];

async function readNetwork(soap: Soap): Promise<CameraNetwork> {
  const outcome = await soap.call(operation('device', 'GetNetworkInterfaces'));
  const { host, peer_address } = soap.connection;
  const contacted = [host, peer_address].filter((each) => each !== undefined);
  if (outcome.kind !== 'reply') return { mac: undefined, addresses: contacted };
  return { mac: macOf(outcome.body), addresses: [...contacted, ...addressesOf(outcome.body)] };
}

// Checks that the camera of a connection still answers: another one may have taken its address meanwhile.

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
