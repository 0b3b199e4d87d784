/** Reads the description of a host: camera or recorder, identity, channels, their streams and abilities. */
import { z } from 'zod';
import { deviceAddress } from '../../../src/toolkit/driver/device-address.ts';
import type { OnRefused } from '../../../src/toolkit/driver/refused-addresses.ts';
import { type DeviceStream, streamWithLogin } from '../../../src/toolkit/driver/stream-login.ts';
import { texts as driver_texts } from '../../../src/toolkit/driver/texts.ts';
import { DeviceRejected, DeviceUnreachable } from '../../../src/platform/errors.ts';
import { type Abilities, abilitiesOf, abilityReply } from '../host/abilities.ts';
import type { Device } from '../host/device.ts';
import { failureOf } from '../host/rsp-codes.ts';
import type { Limits } from '../limits.ts';
import type { HostOptions } from '../options.ts';
import { texts } from '../texts.ts';
import { faultIn, type Outcome, valueOf } from '../host/replies.ts';

export interface HostFacts {
  /** The identity first; the others are keys that an earlier version may have chosen. */
  readonly asset_keys: readonly [string, ...string[]];
  readonly asset_key: string;
  readonly name: string;
  readonly model: string | null;
  readonly firmware: string | null;
  readonly isRecorder: boolean;
  readonly channel_count: number;
  readonly abilities: Abilities;
  /** RTSP port; null when RTSP is switched off. */
  readonly rtsp_port: number | null;
  /** Port of the vendor's own protocol. */
  readonly push_port: number;
}

export const text = z
  .string()
  .transform((value) => value.trim())
  .catch('');
const devInfo = z.looseObject({
  DevInfo: z.looseObject({
    model: text,
    name: text,
    type: text,
    exactType: text,
    channelNum: z.number().catch(1),
    firmVer: text,
  }),
});
const localLink = z.looseObject({ LocalLink: z.looseObject({ mac: text }) });
const p2p = z.looseObject({ P2p: z.looseObject({ uid: text }) });
const netPort = z.looseObject({
  NetPort: z.looseObject({
    rtspEnable: z.number().optional(),
    rtspPort: z.int().min(1).max(65_535).optional().catch(undefined),
    mediaPort: z.int().min(1).max(65_535).optional().catch(undefined),
  }),
});
const rtspReply = z.looseObject({ rtspUrl: z.looseObject({ subStream: text, mainStream: text }) });

const channels_max = 64;

/** Rejects when the host does not report the required facts. */
export async function describeHost(
  device: Pick<Device, 'ask'>,
  options: HostOptions,
  limits: Limits,
): Promise<HostFacts> {
  const [info, ability, link, uid, ports] = await device.ask([
    { cmd: 'GetDevInfo', action: 0, param: {} },
    { cmd: 'GetAbility', action: 0, param: { User: { userName: options.username } } },
    { cmd: 'GetLocalLink', action: 0, param: {} },
    { cmd: 'GetP2p', action: 0, param: {} },
    { cmd: 'GetNetPort', action: 0, param: {} },
  ]);
  const about = needed(valueOf(info, devInfo), info, 'GetDevInfo', limits).DevInfo;
  const abilities = abilitiesOf(needed(valueOf(ability, abilityReply), ability, 'GetAbility', limits));
  const mac = settled(link, limits) && valueOf(link, localLink)?.LocalLink.mac;
  const device_uid = settled(uid, limits) && valueOf(uid, p2p)?.P2p.uid;
  const asset_keys = identitiesOf({ mac, uid: device_uid, label: options.identity });
  if (!hasAny(asset_keys)) throw new DeviceRejected(texts.no_identity);
  return {
    asset_keys,
    asset_key: asset_keys[0],
    name: about.name === '' ? options.name : about.name,
    model: orNull(about.model),
    firmware: orNull(about.firmVer),
    channel_count: Math.min(about.channelNum, channels_max),
    isRecorder: about.channelNum > 1 || /NVR|HUB|BASE/iu.test(`${about.type} ${about.exactType}`),
    abilities,
    rtsp_port: rtspPort(ports),
    push_port: valueOf(ports, netPort)?.NetPort.mediaPort ?? push_port_default,
  };
}

export function orNull(value: string): string | null {
  return value === '' ? null : value;
}

/** Null when RTSP is switched off. */
function rtspPort(reply: Outcome | undefined): number | null {
  const port = valueOf(reply, netPort)?.NetPort;
  return port?.rtspEnable === 0 ? null : (port?.rtspPort ?? rtsp_port_default);
}
const rtsp_port_default = 554;
const push_port_default = 9_000;

interface Identities {
  readonly mac: string | undefined | false;
  readonly uid: string | undefined | false;
  readonly label: string | undefined;
}

/**
 * The vendor's UID, else the MAC, which changes between LAN and Wi-Fi, else the label of the options. Serial numbers do not
 * count: some are published defaults, others change with each start.
 */
export function identitiesOf({ mac, uid, label }: Identities): readonly string[] {
  const digits = mac ? mac.replaceAll(/[^0-9a-f]/giu, '').toLowerCase() : '';
  const isMac = digits.length === 12 && genuine(digits) !== undefined && digits !== 'ffffffffffff';
  const known = [uid ? genuine(uid) : undefined, isMac ? digits : undefined, label];
  return known.flatMap((each) => (each === undefined ? [] : [`vendorcam:${each}`]));
}

function hasAny(keys: readonly string[]): keys is readonly [string, ...string[]] {
  return keys.length > 0;
}

export function genuine(value: string): string | undefined {
  const trimmed = value.trim();
  return /^[A-Za-z0-9_-]{4,64}$/u.test(trimmed) && /[1-9A-Za-z]/u.test(trimmed) ? trimmed : undefined;
}

/** Builds the address of the sub stream. Devices report an internal address, which may be unreachable. */
export function streamOf(
  reply: Outcome | undefined,
  channel: number,
  host: {
    readonly options: HostOptions;
    /** Where the device answers; left out, at its host. */
    readonly address?: string;
    readonly password: string;
    /** As the device reports it. */
    readonly rtsp_port: number;
    readonly is_host_shared?: boolean;
    /** The host reported an address that is not used. */
    readonly onRefused?: OnRefused | undefined;
  },
): DeviceStream | undefined {
  const { options, address = options.host, password, is_host_shared = false } = host;
  const { username, certificate_sha256, allow_plain_rtsp } = options;
  // A router may forward the reported port to another device, whose picture would be shown as that of this one.
  if (options.rtsp_port === undefined && is_host_shared) {
    return { rtsp_url: null, stream_fault: driver_texts.shared_host };
  }
  const rtsp_port = options.rtsp_port ?? host.rtsp_port;
  const urls = valueOf(reply, rtspReply)?.rtspUrl;
  // The port is the one of NetPort: of a reported address only the path is used.
  const own = { scheme: 'rtsp', host: address, port: rtsp_port, ports: 'configured' } as const;
  const reported = [urls?.subStream, urls?.mainStream].filter((url) => url !== undefined && url !== '');
  const streams = [...reported, previewPath(channel)].flatMap((url) => {
    const stream = deviceAddress(url ?? '', own);
    if ('url' in stream) return [stream];
    host.onRefused?.(url ?? '', stream.refused);
    return [];
  });
  const [found] = streams;
  // A certificate that was only pinned at the first contact is the default and withholds no stream.
  const needs_tls = certificate_sha256 !== undefined && !allow_plain_rtsp;
  return found && streamWithLogin(found.url, { username, password }, { needs_tls });
}

/** Firmware that does not report its addresses has this path; sub streams are H.264. */
function previewPath(channel: number): string {
  return `/h264Preview_${String(channel + 1).padStart(2, '0')}_sub`;
}

function needed<T>(value: T | undefined, outcome: Outcome | undefined, cmd: string, limits: Limits): T {
  if (value !== undefined) return value;
  const fault = faultIn(outcome);
  if (fault) throw failureOf(fault, limits);
  throw new DeviceUnreachable(texts.unknown_format(cmd));
}

/** False when the device cannot report it; a temporary failure must not give the device another identity. */
function settled(outcome: Outcome | undefined, limits: Limits): boolean {
  const fault = faultIn(outcome);
  if (fault === undefined) return true;
  if (fault.kind === 'unsupported' || fault.kind === 'forbidden' || fault.kind === 'bad_request')
    return false;
  throw failureOf(fault, limits);
}
