/** The service's part of the configuration: beside the daemon (`service`), and the file of its own when it runs alone. */
import { isIP } from 'node:net';
import { z } from 'zod';

const origin = z
  .url({ protocol: /^https?$/u, error: 'must be an http:// or https:// address' })
  .refine(
    (text) => new URL(text).origin === text,
    'write scheme, host and port only, without a "/" at the end',
  );

const listen = z
  .string()
  .refine((text) => listenAt(text) !== undefined, 'write ADDRESS:PORT, such as 127.0.0.1:8080 or [::]:8080');

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
  media_origins: z
    .array(origin)
    .max(32)
    .default([])
    .describe('WebRTC servers that the page may play video from, such as http://192.168.1.1:8889'),
});
export type ServiceSection = z.output<typeof serviceSection>;

export interface ServiceConfig {
  readonly listen: { readonly host: string; readonly port: number };
  /** Lower case. */
  readonly hosts: readonly string[];
  readonly media_origins: readonly string[];
}

/** The section in the words of the service. `media_url`: where the kit's own media server is seen. */
export function serviceOf(section: ServiceSection, media_url: string | undefined): ServiceConfig {
  const own = media_url === undefined ? [] : [new URL(media_url).origin];
  return {
    listen: listenAt(section.listen) ?? { host: '127.0.0.1', port: 8080 },
    hosts: section.hosts.map((name) => name.toLowerCase()),
    media_origins: [...new Set([...own, ...section.media_origins])],
  };
}

function listenAt(text: string): ServiceConfig['listen'] | undefined {
  const [, v6, v4, digits] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/u.exec(text) ?? [];
  const host = v6 ?? v4 ?? '';
  const port = Number(digits);
  const isAddress = v6 === undefined ? isIP(host) === 4 || host === 'localhost' : isIP(host) === 6;
  return isAddress && port <= 65_535 ? { host, port } : undefined;
}
