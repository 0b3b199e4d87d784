/** Reads what a camera is: login, services, identity, profiles. */
import { isDeepStrictEqual } from 'node:util';
import type { TakePicture } from '../../../src/toolkit/driver/driver.ts';
import type { Health } from '../../../src/toolkit/driver/health.ts';
import type { OnRefused } from '../../../src/toolkit/driver/refused-addresses.ts';
import type { DeviceStream } from '../../../src/toolkit/driver/stream-login.ts';
import {
  keyFrameRequest,
  type Media,
  pictureOf,
  type PictureParts,
  type Profile,
  readProfiles,
  readStream,
  smallestProfile,
  streamProfile,
  takePicture,
  type Unread,
} from './media.ts';
import { readSources, type VideoSource } from './sources.ts';
import type { CameraOptions } from '../options.ts';
import { DeviceUnreachable, DeviceRejected } from '../../../src/platform/errors.ts';
import { type LoginOptions, passLogin } from '../soap/login.ts';
import { expectReply, namespaces, operation, reachable, type ServiceName, type Soap } from '../soap/soap.ts';
import { all, find, textAt, type XmlNode, everywhere } from '../soap/xml.ts';
import { texts } from '../texts.ts';
import { isIPv4 } from 'node:net';

export interface Device {
  /** Possible identities, the best first. */
  readonly asset_keys: readonly [string, ...string[]];
  readonly mac: string | undefined;
  readonly information: DeviceInformation;
  /** Address of each service. */
  readonly services: ReadonlyMap<ServiceName, string>;
  /** Why the address that it reported for a service is not used. */
  readonly unusable: ReadonlyMap<ServiceName, string>;
  /** All of them. */
  readonly profiles: readonly Profile[];
  /** Several of a recorder, an encoder or a camera with two lenses; none where the profiles are not known. */
  readonly sources: readonly Source[];
  /** Why the camera did not list its profiles, without which it has no stream and no movement. */
  readonly profiles_unread: Unread | undefined;
  /** Address of the gateway on this connection, for events that the camera sends. */
  readonly local_address: string | undefined;
}

/** A video source: its stream, its picture and its motor belong together. */
export interface Source {
  /** Empty where the camera names none. */
  readonly token: string;
  /** Token and node of the profile that moves; undefined for a fixed camera. */
  readonly ptz: { readonly profile: string; readonly node: string } | undefined;
  readonly stream: DeviceStream | undefined;
  readonly stream_unread: Unread | undefined;
  readonly takePicture: TakePicture | undefined;
  /** Why it gives no pictures, where its media service was asked for them. */
  readonly still: Health | undefined;
  /** Undefined where the configuration asks for none. */
  readonly takeAlarmPicture: TakePicture | undefined;
  readonly requestKeyFrame: (() => Promise<void>) | undefined;
}

/** Answer to the login. */
export type LoggedIn = Pick<Device, 'information' | 'local_address'>;

/** Reads the description of the camera. Throws DeviceUnreachable when it does not answer. */
export async function readDevice(
  soap: Soap,
  { information, local_address }: LoggedIn,
  options: CameraOptions,
): Promise<Device> {
  const { services, unusable } = await readServices(soap);
  const network = await readNetwork(soap);
  const asset_keys = cameraKeys(information, network, options.identity);
  const read = await readProfiles(soap, services);
  const media = read && 'profiles' in read ? read : undefined;
  const chosen = chosenOf(options);
  const { profiles, sources: listed } = await readSources(soap, services, media ?? { profiles: [] }, chosen);
  const sources: Source[] = [];
  for (const source of listed) {
    // A recorder has up to a hundred: what is not chosen costs no request.
    const isChosen = chosen.length === 0 || chosen.includes(source.token);
    if (!media || !isChosen) sources.push(bare(source.token));
    else sources.push(await readSource(soap, { ...source, services, media, options }));
  }
  const profiles_unread = read && 'fault' in read ? read : undefined;
  const found = { services, unusable, profiles, sources, profiles_unread };
  return { asset_keys, mac: network.mac, information, ...found, local_address };
}

/** What a source that cannot be shown is. */
export function bare(token: string): Source {
  const none = { stream: undefined, stream_unread: undefined, still: undefined, requestKeyFrame: undefined };
  return { token, ptz: undefined, ...none, takePicture: undefined, takeAlarmPicture: undefined };
}

interface SourceParts extends VideoSource {
  readonly services: ReadonlyMap<ServiceName, string>;
  readonly media: Media;
  readonly options: CameraOptions;
}

async function readSource(
  soap: Soap,
  { token, profiles, services, media: { service }, options }: SourceParts,
): Promise<Source> {
  const url = services.get(service) ?? '';
  const shown = streamProfile(profiles);
  const moving = profiles.filter(({ ptz_node }) => services.has('ptz') && ptz_node !== undefined);
  // Each view of a camera with a fisheye lens has a motor of its own (blakeblackshear/frigate#17919).
  const motor = moving.find(({ configuration }) => configuration === shown?.configuration) ?? moving[0];
  const reported = await readStream(soap, url, { service, profiles });
  const isUnread = reported !== undefined && 'fault' in reported;
  // Pictures have the size of the stream: those of a sub stream are small.
  const picture = shown && (await pictureOf({ soap, service, url, profile: shown.token }));
  const hasPictures = typeof picture === 'function';
  return {
    token,
    ptz: motor && { profile: motor.token, node: motor.ptz_node ?? '' },
    stream: isUnread ? undefined : reported,
    stream_unread: isUnread ? reported : undefined,
    takePicture: hasPictures ? picture : undefined,
    still: hasPictures ? undefined : picture,
    takeAlarmPicture: options.alarm_picture ? smallPicture({ soap, service, url }, profiles) : undefined,
    requestKeyFrame: keyFrameRequest({ soap, service, url }, shown),
  };
}

/** Of a camera that gives none, each alarm says why. */
function smallPicture(media: Omit<PictureParts, 'profile'>, profiles: readonly Profile[]): TakePicture {
  const { token: profile = '' } = smallestProfile(profiles) ?? {};
  return async () => takePicture({ ...media, profile });
}

/** Resolves with whether the camera reports something that it had refused, or other video sources. */
export async function hasChanged(
  soap: Soap,
  { services, sources, profiles_unread }: Device,
  options: Pick<CameraOptions, 'sources'>,
): Promise<boolean> {
  const media = await readProfiles(soap, services);
  if (!media || 'fault' in media) return false;
  const now = await readSources(soap, services, media, chosenOf(options));
  const isSame = isDeepStrictEqual(now.sources.map(tokenOf), sources.map(tokenOf));
  if (profiles_unread || !isSame) return true;
  for (const [index, { profiles }] of now.sources.entries()) {
    if (sources[index]?.stream_unread?.may_pass !== true) continue;
    const stream = await readStream(soap, services.get(media.service), { service: media.service, profiles });
    if (stream === undefined || !('fault' in stream)) return true;
  }
  return false;
}

function chosenOf({ sources = [] }: Pick<CameraOptions, 'sources'>): readonly string[] {
  return sources.map(tokenOf);
}

function tokenOf({ token }: { readonly token: string }): string {
  return token;
}

/** Throws DeviceUnreachable when the camera does not answer, and LoginRefused when it refuses the login. */
export async function logIn(soap: Soap, options: LoginOptions): Promise<LoggedIn> {
  const { body, local_address } = await passLogin(soap, options);
  return { information: informationOf(body), local_address };
}

/** Reads GetServices, else GetCapabilities of older devices; both where the first lacks services that the second may list. */
async function readServices(soap: Soap): Promise<FoundServices> {
  const found: FoundServices = { services: new Map(), unusable: new Map() };
  const { services } = found;
  const asked = operation('device', 'GetServices', '<IncludeCapability>false</IncludeCapability>');
  const modern = await soap.call(asked);
  if (modern.kind === 'reply') addServices(found, modern.body, soap);
  const hasMedia = services.has('media') || services.has('media2');
  if (hasMedia && services.has('ptz') && services.has('events')) return found;
  const old = await soap.call(operation('device', 'GetCapabilities', '<Category>All</Category>'));
  // A device with the device service alone is accepted.
  const isKnown = services.size > 1 || (old.kind === 'fault' && modern.kind === 'reply');
  if (old.kind === 'reply' || !isKnown) {
    addCapabilities(found, expectReply(old, 'GetCapabilities').body, soap);
  }
  return found;
}

interface FoundServices {
  readonly services: Map<ServiceName, string>;
  /** Why addresses are not used. */
  readonly unusable: Map<ServiceName, string>;
}

function addServices(found: FoundServices, body: XmlNode, soap: Soap): void {
  for (const service of all(find(body, 'getServicesResponse'), 'service')) {
    const namespace = textAt(service, 'namespace')?.replace(/\/$/u, '');
    const name = serviceNames.find((each) => namespaces[each] === namespace);
    const address = textAt(service, 'xaddr');
    if (name && address !== undefined) addService(found, name, address, soap);
  }
}

function addCapabilities(found: FoundServices, body: XmlNode, soap: Soap): void {
  const capabilities = find(body, 'getCapabilitiesResponse', 'capabilities');
  for (const name of serviceNames) {
    const address = textAt(capabilities, name, 'xaddr') ?? textAt(capabilities, 'extension', name, 'xaddr');
    if (address !== undefined && !found.services.has(name)) addService(found, name, address, soap);
  }
}

function addService(
  { services, unusable }: FoundServices,
  name: ServiceName,
  address: string,
  { connection }: Soap,
): void {
  const onRefused: OnRefused = (reported, reason) => {
    unusable.set(name, texts.address_unusable(reported, reason));
    connection.onRefused?.(reported, reason);
  };
  const url = reachable(address, { ...connection, onRefused });
  if (url !== undefined) services.set(name, url);
}

const serviceNames: readonly ServiceName[] = ['device', 'media', 'media2', 'ptz', 'events', 'deviceio'];

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

// Builds the identity of a camera from the hardware data that it reports.

interface DeviceInformation {
  readonly manufacturer: string | null;
  readonly model: string | null;
  readonly firmware: string | null;
  readonly serial: string | null;
}

/** Placeholders of makers for a missing serial number, and defaults that many cameras share. */
const placeholder =
  /^(?:[0x:.\s-]+|(.)\1*|0?123456(?:7(?:8(?:90?)?)?)?|12345679890|abcd1234|abcdef\d*|none|null|unknown|n\/?a|serial(?:[ _-]?number)?|default|0+65536|-+)$/iu;
/** Hardware addresses that firmware ships with. */
const default_macs: ReadonlySet<string> = new Set([
  '00123456789a',
  '123456789abc',
  '001122334455',
  'aabbccddeeff',
]);
const key_part_chars_max = 64;

/** Reads a GetDeviceInformationResponse as texts, since 007 and 1.0 are not numbers. */
function informationOf(body: XmlNode): DeviceInformation {
  const read = (name: string): string | null =>
    textAt(body, 'getDeviceInformationResponse', name)?.slice(0, 200) ?? null;
  return {
    manufacturer: read('manufacturer'),
    model: read('model'),
    firmware: read('firmwareVersion'),
    serial: read('serialNumber'),
  };
}

/** @param addresses IPv4 addresses of the camera: some report one without its dots as their serial number. */
function genuineSerial({ serial }: DeviceInformation, addresses: readonly string[]): string | undefined {
  if (serial === null || placeholder.test(serial)) return undefined;
  return addresses.some((address) => address.replaceAll('.', '') === serial) ? undefined : serial;
}

/** The first hardware address of a GetNetworkInterfacesResponse, lower case with colons. */
function macOf(body: XmlNode): string | undefined {
  const macs = everywhere(body, 'hwAddress').map(({ text }) =>
    text.toLowerCase().replaceAll(/[^0-9a-f]/gu, ''),
  );
  const mac = macs.find(
    (each) => each.length === 12 && !/^(?:0+|f+)$/u.test(each) && !default_macs.has(each),
  );
  return mac?.match(/../gu)?.join(':');
}

/** The IPv4 addresses of a GetNetworkInterfacesResponse. */
function addressesOf(body: XmlNode): readonly string[] {
  return everywhere(body, 'address')
    .map(({ text }) => text)
    .filter(isIPv4);
}

interface CameraNetwork {
  readonly mac: string | undefined;
  readonly addresses: readonly string[];
}

/**
 * Possible values of `asset_key`, the best first: the one of the options, else maker, model and serial number, which is
 * unique within a maker and a model only, else the MAC address. Earlier versions may have chosen the last.
 */
function cameraKeys(
  information: DeviceInformation,
  { mac, addresses }: CameraNetwork,
  identity: string | undefined,
): readonly [string, ...string[]] {
  const serial = genuineSerial(information, addresses);
  const earlier = serial === undefined ? genuineSerial(information, []) : undefined;
  const [first, ...others] = [
    identity === undefined ? [] : `onvif:configured:${identity}`,
    serial === undefined ? [] : serialKey(information, serial),
    mac === undefined ? [] : macKey(mac),
  ].flat();
  if (first === undefined) throw new DeviceRejected(texts.no_identity);
  return [first, ...others, ...(earlier === undefined ? [] : [serialKey(information, earlier)])];
}

/** Identity of a camera without a separate serial number. */
function macKey(mac: string): string {
  return `onvif:mac:${mac.replaceAll(':', '')}`;
}

function serialKey({ manufacturer, model }: DeviceInformation, serial: string): string {
  return `onvif:${[manufacturer, model, serial].map((part) => keyPart(part ?? 'unknown')).join(':')}`;
}

function keyPart(text: string): string {
  const plain = text.toLowerCase().replaceAll(/[^a-z0-9._]+/gu, '-');
  return plain.slice(0, key_part_chars_max);
}
