/** Reads the media profiles of a camera, their streams and their pictures. */
import { isIP } from 'node:net';
import { deviceAddress, namesOwnHost, type OwnAddress } from '../../../src/toolkit/driver/device-address.ts';
import { fails, type Health, notOffered } from '../../../src/toolkit/driver/health.ts';
import type { OnRefused } from '../../../src/toolkit/driver/refused-addresses.ts';
import { type DeviceStream, streamWithLogin } from '../../../src/toolkit/driver/stream-login.ts';
import { texts as driver_texts } from '../../../src/toolkit/driver/texts.ts';
import { digestChallenges, offersBasic } from '../soap/digest-login.ts';
import { all, attribute, escapeXml, find, textAt, type XmlNode } from '../soap/xml.ts';
import {
  call_deadline_ms,
  type Connection,
  describe,
  operation,
  reachable,
  schema_namespace,
  type ServiceName,
  type Soap,
  type SoapOutcome,
} from '../soap/soap.ts';
import { texts } from '../texts.ts';
import { expectPicture, picture_bytes_max } from '../../../src/toolkit/device/pictures/picture.ts';
import type { TakePicture } from '../../../src/toolkit/driver/driver.ts';
import { DeviceUnreachable } from '../../../src/platform/errors.ts';

export interface Profile {
  readonly token: string;
  /** Upper case without dots, such as H264; undefined where the profile has no encoder. */
  readonly encoding: string | undefined;
  readonly pixels: number;
  /** Node of the motor; empty where the camera does not name it, undefined where the profile does not move. */
  readonly ptz_node: string | undefined;
  /** Tokens of what it shows, by which events name it too; empty where the camera names none. */
  readonly source: string;
  readonly configuration: string;
  readonly analytics: string;
}
type Encoded = Pick<Profile, 'token' | 'encoding' | 'pixels'>;

/** Pictures below this are thumbnails. */
const pixels_min = 320 * 180;
const profiles_max = 256;

export interface Media {
  readonly service: ServiceName;
  readonly profiles: readonly Profile[];
}

/** Why something of a camera could not be read. */
export interface Unread {
  readonly fault: string;
  /** It may be read later without a change of the configuration, as when the camera is booting. */
  readonly may_pass: boolean;
  /** Undefined: only the camera knows. */
  readonly remedy: string | undefined;
}

/** Profiles by Media (ver10), else by Media2; undefined where the camera has neither. */
export async function readProfiles(
  soap: Soap,
  services: ReadonlyMap<ServiceName, string>,
): Promise<Media | Unread | undefined> {
  let unread: Unread | undefined;
  for (const service of ['media', 'media2'] as const) {
    const url = services.get(service);
    if (url === undefined) continue;
    // Some Media2 services fail when they are asked for all types at once.
    const types = ['VideoSource', 'VideoEncoder', 'PTZ'].map((type) => `<Type>${type}</Type>`).join('');
    const asked = operation(service, 'GetProfiles', service === 'media2' ? types : '');
    const outcome = await soap.call({ ...asked, url });
    const profiles = outcome.kind === 'reply' ? profilesOf(outcome.body) : [];
    if (profiles.length > 0) return { service, profiles };
    unread =
      outcome.kind === 'reply'
        ? { fault: texts.no_profiles, may_pass: true, remedy: texts.create_profile }
        : unreadOf(outcome);
  }
  return unread;
}

/** A login that lacks a right is not tried again: cameras lock accounts. */
function unreadOf(outcome: Exclude<SoapOutcome, { kind: 'reply' }>): Unread {
  const code = outcome.kind === 'fault' ? outcome.code : '';
  return {
    fault: describe(outcome),
    may_pass: !/NotAuthorized|NotSupported/u.test(code),
    remedy: code === 'NotAuthorized' ? texts.rights_remedy : undefined,
  };
}

export function profilesOf(body: XmlNode): readonly Profile[] {
  return all(find(body, 'getProfilesResponse'), 'profiles')
    .slice(0, profiles_max)
    .map((profile) => {
      const set = find(profile, 'configurations') ?? profile;
      const [source, encoder, analytics, ptz] = configurations.map(
        // Media2 calls them by their short names.
        (name) => find(set, `${name}Configuration`) ?? find(set, name.replace(/^video(?=Ana)/u, '')),
      );
      const [width, height] = ['width', 'height'].map((side) =>
        Number(textAt(encoder, 'resolution', side) ?? 0),
      );
      return {
        token: attribute(profile, 'token') ?? '',
        encoding: textAt(encoder, 'encoding')?.toUpperCase().replaceAll('.', ''),
        pixels: (width ?? 0) * (height ?? 0),
        ptz_node: ptz && (textAt(ptz, 'nodeToken') ?? ''),
        source: textAt(source, 'sourceToken') ?? '',
        configuration: attribute(source, 'token') ?? '',
        analytics: attribute(analytics, 'token') ?? '',
      };
    })
    .filter(({ token }) => token !== '');
}
const configurations = ['videoSource', 'videoEncoder', 'videoAnalytics', 'ptz'] as const;

/** The sub stream: the smallest H.264 that is more than a thumbnail, since browsers show no H.265. */
export function streamProfile<P extends Encoded>(profiles: readonly P[]): P | undefined {
  const bySize = profiles.toSorted((a, b) => a.pixels - b.pixels);
  const isShown = ({ pixels }: P): boolean => pixels === 0 || pixels >= pixels_min;
  const h264 = bySize.filter(({ encoding }) => encoding === 'H264');
  return h264.find(isShown) ?? h264.at(-1) ?? bySize.find(({ encoding }) => encoding !== undefined);
}

/** That of the smallest pictures. */
export function smallestProfile(profiles: readonly Profile[]): Profile | undefined {
  const bySize = profiles.toSorted((a, b) => a.pixels - b.pixels);
  return bySize.find(({ pixels }) => pixels > 0) ?? bySize[0];
}

/** Reads the stream address; undefined when the camera has none or none that is used. */
export async function readStream(
  soap: Soap,
  url: string | undefined,
  { service, profiles }: { readonly service: ServiceName; readonly profiles: readonly Encoded[] },
): Promise<DeviceStream | Unread | undefined> {
  const profile = streamProfile(profiles);
  if (!profile || url === undefined) return undefined;
  const token = `<ProfileToken>${escapeXml(profile.token)}</ProfileToken>`;
  const tt = `xmlns="${schema_namespace}"`;
  const setup = `<StreamSetup><Stream ${tt}>RTP-Unicast</Stream><Transport ${tt}><Protocol>RTSP</Protocol></Transport></StreamSetup>`;
  const inner = service === 'media2' ? `<Protocol>RTSP</Protocol>${token}` : `${setup}${token}`;
  const outcome = await soap.call({ ...operation(service, 'GetStreamUri', inner), url });
  if (outcome.kind !== 'reply') return unreadOf(outcome);
  const answer = find(outcome.body, 'getStreamUriResponse');
  const reported = textAt(answer, 'mediaUri', 'uri') ?? textAt(answer, 'uri');
  return reported === undefined ? undefined : withLogin(reported, soap);
}

/** Uses the configured host, as for the services: cameras behind a router report their internal address. */
function withLogin(reported: string, { connection }: Soap): DeviceStream | Unread {
  const { username, password = '', secure, allow_plain_rtsp, onRefused } = connection;
  const found = deviceAddress(reported, streamPlace(reported, connection));
  if ('refused' in found) {
    onRefused?.(reported, found.refused);
    const fault = texts.address_unusable(reported, found.refused);
    return { fault, may_pass: false, remedy: undefined };
  }
  if (mayBeAnothers(reported, connection)) return { rtsp_url: null, stream_fault: driver_texts.shared_host };
  const login = username === undefined ? undefined : { username, password };
  return streamWithLogin(found.url, login, { needs_tls: secure && allow_plain_rtsp !== true });
}

function streamPlace(reported: string, connection: Connection): OwnAddress {
  const { rtsp_port, peer_address } = connection;
  const scheme = /^rtsps:/iu.test(reported) ? 'rtsps' : 'rtsp';
  // A name may lead elsewhere when the media server looks it up. A certificate, which names the camera, is checked then.
  const isName = isIP(connection.host) === 0;
  const host = (isName && scheme === 'rtsp' ? peer_address : undefined) ?? connection.host;
  if (rtsp_port !== undefined) return { scheme, host, port: rtsp_port, ports: 'configured' };
  return { scheme, host, port: default_ports[scheme], ports: 'reported' };
}

/** Whether a router may forward the reported port to another camera, whose picture would be shown as that of this one. */
function mayBeAnothers(reported: string, connection: Connection): boolean {
  const { is_host_shared = false, rtsp_port } = connection;
  return is_host_shared && rtsp_port === undefined && !namesOwnHost(reported, connection);
}
const default_ports = { rtsp: 554, rtsps: 322 } as const;

// Takes pictures: the camera names the address (GetSnapshotUri), the host is the configured one.

export interface PictureParts {
  readonly soap: Soap;
  readonly service: ServiceName;
  /** Of the media service. */
  readonly url: string;
  /** Token of the media profile. */
  readonly profile: string;
}

const picture_deadline_ms = call_deadline_ms;

/** Asks for a key frame: SetSynchronizationPoint of ONVIF Media. A camera that lacks it sends its next one when that is due. */
export function keyFrameRequest(
  { soap, service, url }: Omit<PictureParts, 'profile'>,
  profile: Encoded | undefined,
): (() => Promise<void>) | undefined {
  if (!profile) return undefined;
  const inner = `<ProfileToken>${escapeXml(profile.token)}</ProfileToken>`;
  const asked = operation(service, 'SetSynchronizationPoint', inner);
  return async () => void (await soap.call({ ...asked, url }));
}

/** How pictures are taken, else why the camera gives none. */
export async function pictureOf(parts: PictureParts): Promise<TakePicture | Health> {
  const first = await snapshotUrl(parts);
  if ('url' in first) return async () => takePicture(parts);
  return first.isOffered ? fails(first.fault) : notOffered(first.fault);
}

/** The address is asked for each time: some are valid for a minute only. */
export async function takePicture(parts: PictureParts): Promise<Buffer> {
  const { soap } = parts;
  const found = await snapshotUrl(parts);
  if ('fault' in found) throw new DeviceUnreachable(found.fault);
  const limits = { deadline_ms: picture_deadline_ms, bytes_max: picture_bytes_max };
  const answer = await soap.fetch(found.url, limits);
  if ('kind' in answer) throw new DeviceUnreachable(answer.reason);
  if (answer.status !== 200) {
    const { status, challenges } = answer;
    const isMet =
      digestChallenges(challenges).length > 0 || (soap.connection.secure && offersBasic(challenges));
    const others = challenges.map((each) => each.trim().split(/[\s,]/u, 1)[0]).join(', ');
    throw new DeviceUnreachable(texts.no_picture(status, isMet ? '' : others));
  }
  return expectPicture(answer.bytes, answer.type);
}

/** See ONVIF Media Service Specification, section 5.15.1 (ver10), and Media 2, section 5.5 (ver20): GetSnapshotUri. */
async function snapshotUrl({
  soap,
  service,
  url,
  profile,
}: PictureParts): Promise<
  { readonly url: string } | { readonly fault: string; readonly isOffered: boolean }
> {
  const inner = `<ProfileToken>${escapeXml(profile)}</ProfileToken>`;
  const asked = operation(service, 'GetSnapshotUri', inner);
  const outcome = await soap.call({ ...asked, url });
  if (outcome.kind !== 'reply') {
    // Cameras without pictures refuse the question in many ways.
    const isOffered = outcome.kind === 'failure' || outcome.code === 'NotAuthorized';
    return { fault: describe(outcome), isOffered };
  }
  const answer = find(outcome.body, 'getSnapshotUriResponse');
  const reported = textAt(answer, 'mediaUri', 'uri') ?? textAt(answer, 'uri') ?? '';
  if (reported === '') return { fault: texts.no_picture_address, isOffered: false };
  let fault: string = texts.no_picture_address;
  const onRefused: OnRefused = (address, reason) => {
    fault = texts.address_unusable(address, reason);
    soap.connection.onRefused?.(address, reason);
  };
  const found = reachable(reported, { ...soap.connection, onRefused });
  return found === undefined ? { fault, isOffered: true } : { url: found };
}
