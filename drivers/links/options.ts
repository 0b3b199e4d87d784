/** The options of the links driver. */
import { isIP } from 'node:net';
import { z } from 'zod';
import { utc } from './usage/calendar.ts';
import { linkType, wans_max } from '../../src/contract/kit.ts';
import type { Check } from './checks/api.ts';
import { isDnsName } from './checks/dns.ts';
import { numberIn, portOption, textUpTo, wholeIn } from '../../src/toolkit/driver/option-types.ts';

/** Also of the kernel: an alternative name of an interface has 127 bytes at most, the name itself 15. */
const interfaceName = textUpTo(127);
const ip = z.string().refine((text) => isIP(text) !== 0, 'must be an IPv4 or IPv6 address, not a name');

const https_port = 443;
const stun_port = 3_478;
const targets_max = 8;

const probeTarget = z.union([
  ip.transform((text) => ({ ip: text, port: https_port })),
  z.strictObject({
    ip: ip.describe('address that answers ICMP echo'),
    port: portOption.default(https_port).describe('TCP port that is tried where ICMP is filtered'),
  }),
]);

const stunServer = z.union([
  ip.transform((text) => ({ ip: text, port: stun_port })),
  z.strictObject({
    ip: ip.describe('address of the server'),
    port: portOption.default(stun_port).describe('UDP port of the server'),
  }),
]);

const wan = z.strictObject({
  type: linkType.optional().describe('type of the link, where it cannot be told from the hardware'),
  isp: z.string().min(1).optional().describe('name of the provider, where no other driver reports it'),
  metered: z
    .boolean()
    .optional()
    .describe(
      'probes and checks of this link alone are rare, to save data; left out: of cellular links. Packing follows uplink.metered (by type), speed tests follow metered of speedtest and the type',
    ),
  cap_gb: z
    .number()
    .positive()
    .optional()
    .describe('data of the billing month, both directions, GB of 10^9 bytes; left out: no cap'),
  cap_warn_pct: numberIn(1, 100).default(80).describe('share of cap_gb that is worth an alarm'),
  balanced: z
    .boolean()
    .default(false)
    .describe('carries traffic whenever it answers, as where a firewall shares the traffic by marks'),
});

const probe = z
  .strictObject({
    targets: z
      .array(probeTarget)
      .max(targets_max)
      .default([])
      .refine(
        (all) => all.length !== 1,
        'needs at least two targets, so that a target that is down is not mistaken for the link',
      )
      .describe(
        'addresses that are probed through every link, of both families, since a link may have one alone; empty: no probes',
      ),
    interval_s: numberIn(0.1, 3_600).default(2).describe('seconds between two probes of a link'),
    metered_interval_s: numberIn(0.1, 3_600)
      .default(10)
      .describe('seconds between two probes of a metered link'),
    timeout_ms: wholeIn(100, 60_000).default(3_000).describe('how long an answer may take'),
    tcp: z
      .boolean()
      .default(true)
      .describe('TCP handshakes stand in where ICMP is not answered; false: ICMP alone counts'),
  })
  .prefault({});

const publicIp = z
  .strictObject({
    stun: z
      .array(stunServer)
      .max(targets_max)
      .default([])
      .describe('STUN servers that report the public address of each link; empty: not queried'),
    refresh_min: numberIn(1, 1_440).default(30).describe('minutes until a known address is asked for again'),
  })
  .prefault({});

const usage = z
  .strictObject({
    zone: z
      .string()
      .refine(isTimeZone, 'must be a time zone such as Europe/Berlin')
      .default(utc)
      .describe('IANA time zone of the day'),
    month_starts_on: wholeIn(1, 31)
      .default(1)
      .describe('day on which the billing month begins; of a shorter month it is the last day'),
  })
  .prefault({});

const roots = z
  .strictObject({
    proc: z.string().default('/proc').describe('where /proc is'),
    sys: z.string().default('/sys').describe('where /sys is'),
  })
  .prefault({})
  .describe(
    'where the kernel shows itself, for containers; others than the default are read without netlink',
  );

const checks_max = 4;
const addresses_max = 8;
const text_chars_max = 256;
const url_chars_max = 512;

const httpCheck = z
  .strictObject({
    url: z
      .string()
      .max(url_chars_max)
      .refine(isWebAddress, 'must be an address such as http://example.com/generate_204, without a login')
      .describe('address that is fetched'),
    ip: ip.optional().describe('address of the server, where url has a name'),
    resolver: ip.optional().describe('name server that is asked for the server, over the link'),
    status: wholeIn(100, 599).default(204).describe('HTTP status of the expected answer'),
    body: textUpTo(text_chars_max)
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
    interval_s: numberIn(1, 86_400).default(60).describe('seconds between two checks of a link'),
    metered_interval_s: numberIn(1, 86_400)
      .default(300)
      .describe('seconds between two checks of a metered link'),
    timeout_ms: wholeIn(100, 60_000).default(10_000).describe('how long a check may take'),
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

export const linksOptions = z
  .strictObject({
    interval_s: numberIn(0.1, 60).default(5).describe('seconds between two reports'),
    failover_s: numberIn(0, 3_600)
      .default(60)
      .describe(
        'seconds after which a dead link that keeps the default route while another link answers degrades the kit',
      ),
    wan: z
      .record(interfaceName, wan)
      .default({})
      .refine((all) => Object.keys(all).length <= wans_max, `at most ${wans_max} links`)
      .describe(
        'WAN links by the name or an alternative name of the interface, always listed; others are detected',
      ),
    ignore: z.array(interfaceName).default([]).describe('interfaces that are never a WAN link'),
    probe,
    checks: linkChecks,
    public_ip: publicIp,
    usage,
    roots,
  })
  .refine(({ wan, ignore }) => !ignore.some((name) => Object.hasOwn(wan, name)), {
    path: ['ignore'],
    message: 'names an interface that wan names too; remove it from one of them',
  });
export type LinksOptions = z.output<typeof linksOptions>;

export type WanOptions = LinksOptions['wan'][string];

function isTimeZone(zone: string): boolean {
  if (zone === utc) return true;
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone }).format(0);
    return true;
  } catch {
    return false;
  }
}
