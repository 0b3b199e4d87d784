/** The service's part of the configuration: beside the daemon (`service`), and the separate file when it runs alone. */
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { z } from 'zod';
import { checkTls, tlsOf, tlsSection } from './service-tls.ts';
import type { KeyPath, Reading } from './source.ts';
import { texts } from './texts.ts';
import { systemReason } from '../../platform/errors.ts';

/** Whether the text is a network such as `10.20.0.0/16` or `fd00:1::/64`, with at least so many bits of its address given. */
function isNetwork(text: string, bits_min = 0): boolean {
  const [address = '', bits = '', ...more] = text.split('/');
  const family = isIP(address);
  if (family === 0 || more.length > 0 || !/^\d{1,3}$/u.test(bits)) return false;
  return Number(bits) >= bits_min && Number(bits) <= (family === 6 ? 128 : 32);
}

const network = z
  .string()
  .refine((text) => isNetwork(text), 'write a network as ADDRESS/BITS, such as 10.20.0.0/16 or fd00:1::/64');

const webhooksSection = z
  .union([
    z.literal('off'),
    z.strictObject({
      allow: z
        .array(network)
        .max(64)
        .default([])
        .describe('private networks that receivers may be in, such as 10.20.0.0/16; none by default'),
      allow_http: z.boolean().default(false).describe('receivers may be reached without TLS'),
      timeout_s: z.number().min(1).max(30).default(10).describe('for one delivery'),
      disable_after_h: z
        .number()
        .min(1)
        .max(720)
        .default(72)
        .describe('a receiver whose deliveries all fail for so long is disabled'),
    }),
  ])
  .prefault({})
  .describe('deliveries of events to registered receivers; off: none can be registered');

/** The section in the units of the code; undefined: switched off. */
function webhooksOf(section: z.output<typeof webhooksSection>) {
  if (section === 'off') return undefined;
  const { timeout_s, disable_after_h, ...rules } = section;
  return { ...rules, timeout_ms: timeout_s * 1_000, disable_after_ms: disable_after_h * 3_600_000 };
}

/** PMTiles version 3. */
const beginning = Buffer.from('PMTiles\u0003', 'latin1');

/** Returns a sentence with the fault and the remedy; undefined: the file can be used. */
async function mapFault(file: string): Promise<string | undefined> {
  try {
    await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await handle.stat()).isFile()) return unusable(file, 'is not a file');
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(beginning.length), 0, beginning.length, 0);
    const isArchive = bytesRead === beginning.length && buffer.equals(beginning);
    return isArchive ? undefined : unusable(file, texts.no_archive);
  } catch (error) {
    return unusable(file, texts.cannot_be_read(systemReason(error)));
  }
}

function unusable(file: string, reason: string): string {
  return texts.map_unusable(file, reason);
}

const proxy = z
  .string()
  .refine(
    (text) => isProxy(text),
    'write the address of a proxy, such as 10.0.0.5, or the network of several, such as 10.1.0.0/24',
  );

/** Keys of the section `service` of the daemon, and of the file of a separate service. */
const proxyKeys = {
  trusted_proxies: z
    .array(proxy)
    .max(64)
    .default([])
    .describe(
      'addresses or networks of the reverse proxies in front; limits for each address then hold for their clients, and of others the header is ignored',
    ),
  forwarded_header: z
    .enum(['x-forwarded-for', 'forwarded'])
    .default('x-forwarded-for')
    .describe(
      'header in which the trusted proxies name the address of the client; they must set or extend it',
    ),
};

/** All addresses at once would make every client a proxy, which chooses its own address. */
function isProxy(text: string): boolean {
  return isIP(text) !== 0 || isNetwork(text, 1);
}

export const origin = z.url({ protocol: /^https?$/u, error: 'write an http:// or https:// address' }).refine(
  // Also called for what is no address.
  (text) => !URL.canParse(text) || new URL(text).origin === text,
  'write scheme, host and port only, without a "/" at the end',
);

/** Apps in a web view have a scheme of their own (appwrite/appwrite#13514). */
const app_origin = /^(?!https?:)[a-z][a-z\d+.-]*:\/\/[\w.-]+$/u;
const pageOrigin = z
  .string()
  .refine(
    (text) => app_origin.test(text) || origin.safeParse(text).success,
    'write scheme, host and port only, such as https://app.example.com or capacitor://localhost',
  );

export const listenAddress = z
  .string()
  .refine((text) => listenAt(text) !== undefined, 'write ADDRESS:PORT, such as 127.0.0.1:8080 or [::]:8080');

function perSecond(usual: number) {
  return z.number().min(0.1).max(100_000).default(usual);
}

export const serviceSection = z.strictObject({
  listen: listenAddress
    .default('127.0.0.1:8080')
    .describe(
      'address and port; 127.0.0.1 is this machine alone, an address of the local network opens it to that',
    ),
  hosts: z
    .array(z.string().min(1).max(253))
    .max(32)
    .default([])
    .describe('names under which browsers reach it, beside its addresses, localhost and names in .local'),
  ...proxyKeys,
  media_origins: z
    .array(origin)
    .max(32)
    .default([])
    .describe('WebRTC servers that the page may play video from, such as http://192.168.1.1:8889'),
  limits: z
    .strictObject({
      reads_per_s: perSecond(20).describe('requests that read, of one API key'),
      changes_per_s: perSecond(10).describe('requests that change something, of one API key'),
      fixes_per_s: perSecond(50).describe('pushed locations of one API key; a batch counts once'),
      map_per_s: perSecond(100).describe('parts of the map, of one API key'),
    })
    .prefault({})
    .describe('requests a second, over time; those of 20 s are accepted at once'),
  cors_origins: z
    .array(pageOrigin)
    .max(32)
    .default([])
    .describe(
      'origins whose pages may use the API and the WebSockets with an API key, such as https://app.example.com or capacitor://localhost',
    ),
  sockets: z
    .strictObject({
      per_key: z.int().min(1).max(10_000).default(16).describe('WebSockets of one API key'),
      kits_per_socket: z
        .int()
        .min(1)
        .max(1_024)
        .default(64)
        .describe('kits that one WebSocket at /api/ws may follow, beside the summaries of all'),
    })
    .prefault({})
    .describe('WebSockets'),
  map: z
    .string()
    .min(1)
    .optional()
    .describe(
      'PMTiles file (version 3) with the map of the console; left out: the outline of the world only',
    ),
  webhooks: webhooksSection,
  tls: tlsSection
    .optional()
    .describe('left out: plain HTTP, for the loopback or behind a proxy that terminates TLS'),
  history: z
    .union([
      z.literal('off'),
      z.strictObject({
        days: z.int().min(1).max(400).default(30).describe('days that messages are kept'),
        max_mb: z
          .int()
          .min(10)
          .max(100_000)
          .default(200)
          .describe(
            'size of all messages; beyond it the oldest readings are deleted first, then positions; events last',
          ),
      }),
    ])
    .default({ days: 30, max_mb: 200 })
    .describe('what the page and the API show of the past; off: only the newest values'),
});
type OwnServiceSection = z.output<typeof serviceSection>;
/** What both forms of the service have in common. */
type ServiceSection = Omit<OwnServiceSection, 'history'>;

/** The service of the daemon, for its own kit. */
export type OwnServiceConfig = ReturnType<typeof ownServiceOf>;

interface ServicePlace {
  /** Where names of files begin that are not absolute. */
  readonly dir: string;
  /** Where the kit's own media server is seen. */
  readonly media_url?: string | undefined;
}

/** The section in the words of the service. */
export function serviceOf(section: ServiceSection, { dir, media_url }: ServicePlace) {
  const own = media_url === undefined ? [] : [new URL(media_url).origin];
  return {
    listen: listenAt(section.listen) ?? { host: '127.0.0.1', port: 8080 },
    /** Those in front whose header names the client, and the header. */
    proxies: { trusted: section.trusted_proxies, header: section.forwarded_header },
    hosts: section.hosts.map((name) => name.toLowerCase()),
    media_origins: [...new Set([...own, ...section.media_origins])],
    limits: section.limits,
    cors_origins: section.cors_origins,
    socket_limits: {
      sockets_per_key: section.sockets.per_key,
      kits_per_socket: section.sockets.kits_per_socket,
    },
    /** Undefined: no map. */
    map_file: section.map === undefined ? undefined : resolve(dir, section.map),
    webhooks: webhooksOf(section.webhooks),
    /** Undefined: plain HTTP. */
    tls: section.tls && tlsOf(section.tls, dir),
  };
}

/** The section of the daemon in the words of the service; without `history` none is kept. */
export function ownServiceOf(section: OwnServiceSection, place: ServicePlace) {
  return { ...serviceOf(section, place), history: section.history === 'off' ? undefined : section.history };
}

/** Adds what is wrong with the files that the section names, `at` being where it stands. */
export async function checkService(
  section: ServiceSection,
  { at, media_url, reading }: { at: KeyPath; media_url?: string | undefined; reading: Reading },
): Promise<void> {
  const { dir, warnings } = reading;
  if (section.map !== undefined) {
    const fault = await mapFault(resolve(dir, section.map));
    if (fault !== undefined) warnings.push(fault);
  }
  if (!section.tls) return;
  await checkTls(section.tls, [...at, 'tls'], reading);
  const { media_origins } = serviceOf(section, { dir, media_url });
  const plain = media_origins.filter((each) => each.startsWith('http:'));
  if (plain.length > 0) warnings.push(texts.video_without_tls(plain));
}

/** `host:port`, an IPv6 host in brackets; undefined when it is no address. */
export function listenAt(text: string): { readonly host: string; readonly port: number } | undefined {
  const [, v6, v4, digits] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/u.exec(text) ?? [];
  const host = v6 ?? v4 ?? '';
  const port = Number(digits);
  const isAddress = v6 === undefined ? isIP(host) === 4 || host === 'localhost' : isIP(host) === 6;
  return isAddress && port <= 65_535 ? { host, port } : undefined;
}
