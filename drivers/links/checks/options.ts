/** The options of the checks: what is asked, and which answers count. */
import { isIP } from 'node:net';
import { z } from 'zod';
import type { Check } from './api.ts';
import { isDnsName } from './dns.ts';

const checks_max = 4;
const addresses_max = 8;
const text_chars_max = 256;
const url_chars_max = 512;
const ip = z.string().refine((text) => isIP(text) !== 0, 'must be an IPv4 or IPv6 address, not a name');

const httpCheck = z
  .strictObject({
    url: z
      .string()
      .max(url_chars_max)
      .refine(isWebAddress, 'must be an address such as http://example.com/generate_204, without a login')
      .describe('address that is fetched'),
    ip: ip.optional().describe('address of the server, where url has a name'),
    resolver: ip.optional().describe('name server that is asked for the server, over the link'),
    status: z.int().min(100).max(599).default(204).describe('HTTP status of the expected answer'),
    body: z
      .string()
      .min(1)
      .max(text_chars_max)
      .optional()
      .describe('text that the expected answer contains; required for status 200 without TLS'),
  })
  .refine((check) => !isWebAddress(check.url) || hasAddress(check), {
    path: ['resolver'],
    message: 'is needed, or ip, since url has a name: the resolver of the system leaves by the default route',
  })
  .refine(({ url, status, body }) => status !== 200 || body !== undefined || !url.startsWith('http:'), {
    path: ['body'],
    message: 'is needed for status 200 without TLS: a captive portal answers 200 to every request',
  });

const dnsCheck = z.strictObject({
  name: z.string().refine(isDnsName, 'must be a host name').describe('name that is asked for'),
  server: ip.describe('name server'),
  addresses: z
    .array(ip)
    .max(addresses_max)
    .default([])
    .refine((all) => new Set(all.map((each) => isIP(each))).size <= 1, 'must be all IPv4 or all IPv6')
    .describe('at least one of these is in the expected answer; empty: any public address'),
});

const check = z.union([httpCheck, dnsCheck]).transform(readCheck);

export const linkChecks = z
  .strictObject({
    list: z
      .array(check)
      .max(checks_max)
      .default([])
      .refine(
        (all) => all.length !== 1,
        'needs at least two checks, so that a server that is down is not mistaken for the link',
      )
      .describe('HTTP and DNS questions with known answers, asked over every link; empty: none'),
    interval_s: z.number().min(1).max(86_400).default(60).describe('seconds between two checks of a link'),
    metered_interval_s: z
      .number()
      .min(1)
      .max(86_400)
      .default(300)
      .describe('seconds between two checks of a metered link'),
    timeout_ms: z.int().min(100).max(60_000).default(10_000).describe('how long a check may take'),
  })
  .prefault({});

function readCheck(read: z.output<typeof httpCheck> | z.output<typeof dnsCheck>): Check {
  if ('server' in read) return { kind: 'dns', ...read };
  const { url, status, ip: own_ip, resolver = null, body = null } = read;
  const parsed = new URL(url);
  return { kind: 'http', url: parsed, ip: own_ip ?? literalOf(parsed), resolver, status, body };
}

function isWebAddress(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url !== null && /^https?:$/u.test(url.protocol) && url.username === '' && url.password === '';
}

function hasAddress({
  url,
  ip: own_ip,
  resolver,
}: {
  url: string;
  ip?: string | undefined;
  resolver?: string | undefined;
}) {
  return own_ip !== undefined || resolver !== undefined || literalOf(new URL(url)) !== null;
}

/** The address that a URL has in place of a name. */
function literalOf({ hostname }: URL): string | null {
  const host = hostname.replaceAll(/[[\]]/gu, '');
  return isIP(host) === 0 ? null : host;
}
