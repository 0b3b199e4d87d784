/** Gets to know a camera: login, services, identity, profiles. */
import { DeviceRejected } from '../../src/errors.ts';
import { cameraKey, type DeviceInformation, genuineSerial, informationOf, macOf } from './identity.ts';
import { readProfiles, readStream } from './media.ts';
import type { CameraOptions } from './options.ts';
import {
  expectReply,
  type Login,
  namespaces,
  operation,
  reachable,
  type ServiceName,
  type Soap,
} from './soap.ts';
import { all, find, textAt, type XmlNode } from './xml.ts';

export interface Device {
  readonly asset_key: string;
  readonly information: DeviceInformation;
  /** Where each service is reached. */
  readonly services: ReadonlyMap<ServiceName, string>;
  /** Token of the profile that pans and tilts; undefined for a fixed camera. */
  readonly ptz_profile: string | undefined;
  /** Holds the login. */
  readonly rtsp_url: string | undefined;
  /** Our own address as the camera sees it, for what it shall send to us. */
  readonly local_address: string | undefined;
}

/**
 * Asks the camera what it is. Throws DeviceUnreachable when it does not answer, and DeviceRejected when it refuses the
 * login. A connection counts from GetDeviceInformation on: everything before it is answered without a password.
 */
export async function readDevice(soap: Soap, options: CameraOptions): Promise<Device> {
  const { information, local_address } = await logIn(soap, options);
  const services = await readServices(soap);
  const mac = genuineSerial(information) === undefined ? await readMac(soap) : undefined;
  const asset_key = cameraKey(information, mac, options.identity);
  const media = await readProfiles(soap, services);
  const ptz = services.has('ptz') ? media?.profiles.find(({ hasPtz }) => hasPtz) : undefined;
  const rtsp_url = media && (await readStream(soap, services.get(media.service), media));
  return { asset_key, information, services, ptz_profile: ptz?.token, rtsp_url, local_address };
}

/** Cameras lock accounts: each way of logging in is tried once, and no more than two there are. */
async function logIn(soap: Soap, { username, auth }: CameraOptions) {
  const ways: readonly Login[] =
    username === undefined ? ['none'] : auth === 'auto' ? ['ws_security', 'digest'] : [auth];
  let refusal: unknown;
  for (const way of ways) {
    soap.login = way;
    const outcome = await soap.call(operation('device', 'GetDeviceInformation'));
    const isRefused = outcome.kind === 'fault' && outcome.code === 'NotAuthorized';
    if (!isRefused) {
      const { body, local_address } = expectReply(outcome, 'GetDeviceInformation');
      return { information: informationOf(body), local_address };
    }
    refusal = outcome;
  }
  const isKnown = refusal !== undefined && username !== undefined;
  throw new DeviceRejected(
    isKnown
      ? `the camera refuses the user "${username}" or its password; correct them in the configuration. Nothing more is tried, since cameras lock accounts`
      : 'the camera wants a login; set username and password_file',
  );
}

/** GetServices, else GetCapabilities of older devices; both where the first leaves out what the second may name. */
async function readServices(soap: Soap): Promise<ReadonlyMap<ServiceName, string>> {
  const services = new Map<ServiceName, string>();
  const asked = operation('device', 'GetServices', '<IncludeCapability>false</IncludeCapability>');
  const modern = await soap.call(asked);
  if (modern.kind === 'reply') addServices(services, modern.body, soap);
  const hasMedia = services.has('media') || services.has('media2');
  if (hasMedia && services.has('ptz') && services.has('events')) return services;
  const old = await soap.call(operation('device', 'GetCapabilities', '<Category>All</Category>'));
  // A device with the device service alone is poor, yet known.
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
    if (name && address !== undefined) services.set(name, reachable(address, soap.connection));
  }
}

function addCapabilities(services: Map<ServiceName, string>, body: XmlNode, soap: Soap): void {
  const capabilities = find(body, 'getCapabilitiesResponse', 'capabilities');
  for (const name of serviceNames) {
    const address = textAt(capabilities, name, 'xaddr');
    if (address !== undefined && !services.has(name)) {
      services.set(name, reachable(address, soap.connection));
    }
  }
}

const serviceNames: readonly ServiceName[] = ['device', 'media', 'media2', 'ptz', 'events'];

async function readMac(soap: Soap): Promise<string | undefined> {
  const outcome = await soap.call(operation('device', 'GetNetworkInterfaces'));
  return outcome.kind === 'reply' ? macOf(outcome.body) : undefined;
}
