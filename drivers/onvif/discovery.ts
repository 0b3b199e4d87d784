/** Finds cameras on the local network (WS-Discovery 1.0, ONVIF Core section 7): one probe, a bounded time, no trust. */
import { randomUUID } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { networkInterfaces } from 'node:os';
import { deviceAddress, namesOwnHost } from '../../src/toolkit/driver/device-address.ts';
import { sleep } from '../../src/platform/time.ts';
import type { onvifFeeds } from '../../src/contract/feeds.ts';
import type { DriverHost } from '../../src/toolkit/driver/driver.ts';
import { type CameraOptions, type OnvifOptions, portOf } from './options.ts';
import { texts } from './texts.ts';

/** A camera that answered, with the unverified data of its answer. */
export interface CameraSuggestion {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly secure: boolean;
  /** As reported: the last parts of its scopes `name` and `hardware`. */
  readonly name: string | null;
  readonly model: string | null;
  readonly mac: string | null;
  /** Its endpoint reference, the same on every interface. */
  readonly endpoint: string;
}

export interface DiscoveryOptions {
  readonly signal: AbortSignal;
  readonly window_ms: number;
  /** Network interface to search; all with an IPv4 address when left out. */
  readonly device?: string | undefined;
  /** Destination of the probe; the multicast group when left out. */
  readonly target?: { readonly host: string; readonly port: number };
}

const group = { host: '239.255.255.250', port: 3702 } as const;
const answer_bytes_max = 16_384;
const found_max = 256;
const sockets_max = 16;
/** Devices answer to the type that they have: the older one, that of profiles T and later, or both (ONVIF Core, section 7.3.1). */
const probed_types = ['dn:NetworkVideoTransmitter', 'tds:Device'] as const;
/** UDP loses datagrams: the probe is sent again within the window. */
const repeat_ms = 600;

/** Resolves after the window with the cameras found. Never rejects: without a network it finds none. */
export async function discover(options: DiscoveryOptions): Promise<readonly CameraSuggestion[]> {
  const found = new Map<string, CameraSuggestion>();
  const probes = probed_types.map((type) => ({ type, message_id: `urn:uuid:${randomUUID()}` }));
  const take = (answer: Buffer, from: string): void => {
    const text = answer.length > answer_bytes_max ? '' : answer.toString('utf8');
    for (const each of probes.flatMap(({ message_id }) => readMatches(text, message_id, from))) {
      if (found.size < found_max && !found.has(each.endpoint)) found.set(each.endpoint, each);
    }
  };
  const sockets = await openSockets(options, take);
  const target = options.target ?? group;
  try {
    const end_ms = performance.now() + options.window_ms;
    for (let round = 0; !options.signal.aborted; round += 1) {
      const left_ms = end_ms - performance.now();
      if (left_ms <= 0) break;
      if (round < 2)
        for (const socket of sockets)
          for (const each of probes) socket.send(probe(each), target.port, target.host, () => undefined);
      await sleep(Math.min(left_ms, round === 0 ? repeat_ms : left_ms), options.signal);
    }
  } finally {
    for (const socket of sockets) socket.close();
  }
  return [...found.values()];
}

async function openSockets(
  { device, target }: DiscoveryOptions,
  take: (answer: Buffer, from: string) => void,
): Promise<readonly Socket[]> {
  const addresses = target && device === undefined ? ['0.0.0.0'] : ownAddresses(device);
  const opened = addresses.slice(0, sockets_max).map(async (address) => {
    const socket = createSocket('udp4');
    socket.on('message', (answer, { address: from }) => take(answer, from));
    return new Promise<Socket | undefined>((resolve) => {
      // An interface that disappears meanwhile has found nothing.
      socket.on('error', () => resolve(undefined));
      socket.bind(0, address, () => resolve(socket));
    });
  });
  return (await Promise.all(opened)).filter((socket) => socket !== undefined);
}

/** Binding to the address of an interface also sends from it. */
function ownAddresses(device: string | undefined): readonly string[] {
  return Object.entries(networkInterfaces())
    .filter(([name]) => device === undefined || name === device)
    .flatMap(([, addresses]) => addresses ?? [])
    .filter(({ family, internal }) => family === 'IPv4' && !internal)
    .map(({ address }) => address);
}

function probe({ type, message_id }: { readonly type: string; readonly message_id: string }): string {
  return (
    '<?xml version="1.0" encoding="UTF-8"?><s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"' +
    ' xmlns:a="http://schemas.xmlsoap.org/ws/2004/08/addressing" xmlns:d="http://schemas.xmlsoap.org/ws/2005/04/discovery"' +
    ' xmlns:dn="http://www.onvif.org/ver10/network/wsdl" xmlns:tds="http://www.onvif.org/ver10/device/wsdl"><s:Header>' +
    '<a:Action>http://schemas.xmlsoap.org/ws/2005/04/discovery/Probe</a:Action>' +
    `<a:MessageID>${message_id}</a:MessageID><a:To>urn:schemas-xmlsoap-org:ws:2005:04:discovery</a:To></s:Header>` +
    `<s:Body><d:Probe><d:Types>${type}</d:Types></d:Probe></s:Body></s:Envelope>`
  );
}

/**
 * Reads the matches of one answer. Any host may send anything to the port, so nothing nested is parsed: four plain
 * texts are looked up in a datagram that names our probe. Pure; never throws.
 */
export function readMatches(xml: string, message_id: string, from: string): readonly CameraSuggestion[] {
  if (!xml.includes(message_id)) return [];
  return xml
    .split(/<(?:[\w.-]{1,64}:)?ProbeMatch[\s>]/u)
    .slice(1)
    .map((match) => readMatch(match, from))
    .filter((each) => each !== undefined);
}

function readMatch(match: string, from: string): CameraSuggestion | undefined {
  const endpoint = element(match, 'Address') ?? '';
  const addresses = (element(match, 'XAddrs') ?? '').split(/\s+/u);
  // Uses the address that it answered from: the reported one could be any host, and some report none. Of several, the one with that host.
  const own = addresses.toSorted((a, b) => Number(names(b, from)) - Number(names(a, from)));
  const url = own.map((each) => ownUrl(each, from)).find((each) => each !== undefined);
  if (!url) return undefined;
  const scopes = (element(match, 'Scopes') ?? '').split(/\s+/u);
  const secure = url.protocol === 'https:';
  return {
    host: from,
    port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
    path: url.pathname,
    secure,
    name: scope(scopes, 'name'),
    model: scope(scopes, 'hardware'),
    mac: scope(scopes, 'mac') ?? scope(scopes, 'MAC'),
    endpoint: endpoint === '' ? url.href : endpoint,
  };
}

/** Returns the reported address on the host that answered; undefined where it is invalid. */
function ownUrl(reported: string, from: string): URL | undefined {
  const scheme = /^https:/iu.test(reported) ? 'https' : 'http';
  const port = scheme === 'https' ? 443 : 80;
  const ports = names(reported, from) ? 'reported' : 'configured';
  const found = deviceAddress(reported, { scheme, host: from, port, ports });
  return 'url' in found ? new URL(found.url) : undefined;
}

function names(reported: string, host: string): boolean {
  return namesOwnHost(reported, { host });
}

function element(xml: string, name: string): string | undefined {
  const found = new RegExp(`<(?:[\\w.-]{1,64}:)?${name}(?:\\s[^<>]{0,500})?>([^<]{0,8000})<`, 'u').exec(xml);
  return found?.[1]?.trim();
}

function scope(scopes: readonly string[], kind: string): string | null {
  const start = `onvif://www.onvif.org/${kind}/`;
  const found = scopes.find((each) => each.toLowerCase().startsWith(start.toLowerCase()));
  if (found === undefined) return null;
  const text = found.slice(start.length);
  try {
    return decodeURIComponent(text).slice(0, 200);
  } catch {
    return text.slice(0, 200);
  }
}

interface SurroundingsParts {
  readonly options: OnvifOptions;
  /** As configured now. */
  readonly cameras: () => readonly CameraOptions[];
  readonly host: DriverHost<typeof onvifFeeds>;
  readonly onFound: (found: { readonly count: number; readonly names: string }) => void;
}

const window_ms = 3_000;
const names_max = 16;

/** Searches periodically for cameras that are not configured; runs until the signal aborts, or ends at once when disabled. */
export async function lookAround({ options, cameras, host, onFound }: SurroundingsParts): Promise<void> {
  const { interval_s, device } = options.discovery;
  if (interval_s === 0) return;
  let told = '';
  while (!host.signal.aborted) {
    const found = await discover({ signal: host.signal, window_ms, device });
    if (host.signal.aborted) return;
    const known = new Set(cameras().map((camera) => `${camera.host}:${portOf(camera)}`));
    const strangers = found.filter((each) => !known.has(`${each.host}:${each.port}`));
    const names = strangers
      .slice(0, names_max)
      .map((each) => `${each.host}:${each.port} (${each.model ?? each.name ?? 'unknown model'})`)
      .toSorted()
      .join(', ');
    if (names !== told) {
      told = names;
      onFound({ count: strangers.length, names });
      if (names !== '') host.log.info({ cameras: names }, texts.cameras_found);
    }
    await sleep(interval_s * 1_000, host.signal);
  }
}
