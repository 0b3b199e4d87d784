/** The service's part of the configuration: beside the daemon (`service`), and the separate file when it runs alone. */
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { z } from 'zod';
import { mapFault } from './service/map.ts';
import { proxyKeys } from './service/proxies.ts';
import { checkTls, type ServiceTls, tlsOf, tlsSection } from './service/tls.ts';
import { type WebhookConfig, webhooksOf, webhooksSection } from './service/webhooks.ts';
import type { FaultList, KeyPath } from './source.ts';
import { texts } from './texts.ts';

const origin = z
  .url({ protocol: /^https?$/u, error: 'must be an http:// or https:// address' })
  .refine(
    (text) => new URL(text).origin === text,
    'write scheme, host and port only, without a "/" at the end',
  );

const listen = z
  .string()
  .refine((text) => listenAt(text) !== undefined, 'write ADDRESS:PORT, such as 127.0.0.1:8080 or [::]:8080');

function perSecond(usual: number) {
  return z.number().min(0.1).max(100_000).default(usual);
}

export const serviceSection = z.strictObject({
  listen: listen
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
    .array(origin)
    .max(32)
    .default([])
    .describe(
      'origins whose pages may use the API and the WebSockets with an API key, such as https://app.example.com',
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
export type ServiceSection = Omit<OwnServiceSection, 'history'>;

export interface ServiceConfig {
  readonly listen: { readonly host: string; readonly port: number };
  /** Lower case. */
  readonly hosts: readonly string[];
  /** Those in front whose header names the client, and the header. */
  readonly proxies: {
    readonly trusted: readonly string[];
    readonly header: z.output<typeof proxyKeys.forwarded_header>;
  };
  readonly media_origins: readonly string[];
  /** Requests a second of one API key. */
  readonly limits: {
    readonly reads_per_s: number;
    readonly changes_per_s: number;
    readonly fixes_per_s: number;
    readonly map_per_s: number;
  };
  readonly cors_origins: readonly string[];
  readonly socket_limits: { readonly sockets_per_key: number; readonly kits_per_socket: number };
  /** Absolute path of a PMTiles archive. Undefined: no map. */
  readonly map_file: string | undefined;
  /** Undefined: switched off. */
  readonly webhooks: WebhookConfig | undefined;
  /** Undefined: plain HTTP. */
  readonly tls: ServiceTls | undefined;
}

/** The service of the daemon, for its own kit. */
export interface OwnServiceConfig extends ServiceConfig {
  /** Undefined: no history is kept. */
  readonly history: { readonly days: number; readonly max_mb: number } | undefined;
}

interface ServicePlace {
  /** Where names of files begin that are not absolute. */
  readonly dir: string;
  /** Where the kit's own media server is seen. */
  readonly media_url?: string | undefined;
}

/** The section in the words of the service. */
export function serviceOf(section: ServiceSection, { dir, media_url }: ServicePlace): ServiceConfig {
  const own = media_url === undefined ? [] : [new URL(media_url).origin];
  return {
    listen: listenAt(section.listen) ?? { host: '127.0.0.1', port: 8080 },
    proxies: { trusted: section.trusted_proxies, header: section.forwarded_header },
    hosts: section.hosts.map((name) => name.toLowerCase()),
    media_origins: [...new Set([...own, ...section.media_origins])],
    limits: section.limits,
    cors_origins: section.cors_origins,
    socket_limits: {
      sockets_per_key: section.sockets.per_key,
      kits_per_socket: section.sockets.kits_per_socket,
    },
    map_file: section.map === undefined ? undefined : resolve(dir, section.map),
    webhooks: webhooksOf(section.webhooks),
    tls: section.tls && tlsOf(section.tls, dir),
  };
}

/** The section of the daemon in the words of the service. */
export function ownServiceOf(section: OwnServiceSection, place: ServicePlace): OwnServiceConfig {
  return { ...serviceOf(section, place), history: section.history === 'off' ? undefined : section.history };
}

/** Adds what is wrong with the files that the section names, `at` being where it stands. */
export async function checkService(
  section: ServiceSection,
  place: ServicePlace,
  report: { readonly faults: FaultList; readonly warnings: string[]; readonly at: KeyPath },
): Promise<void> {
  if (section.map !== undefined) {
    const fault = await mapFault(resolve(place.dir, section.map));
    if (fault !== undefined) report.warnings.push(fault);
  }
  if (!section.tls) return;
  await checkTls(section.tls, place.dir, { ...report, at: [...report.at, 'tls'] });
  const plain = serviceOf(section, place).media_origins.filter((each) => each.startsWith('http:'));
  if (plain.length > 0) {
    report.warnings.push(texts.video_without_tls(plain));
  }
}

function listenAt(text: string): ServiceConfig['listen'] | undefined {
  const [, v6, v4, digits] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/u.exec(text) ?? [];
  const host = v6 ?? v4 ?? '';
  const port = Number(digits);
  const isAddress = v6 === undefined ? isIP(host) === 4 || host === 'localhost' : isIP(host) === 6;
  return isAddress && port <= 65_535 ? { host, port } : undefined;
}
