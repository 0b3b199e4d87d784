/** The options of the links driver. */
import { isIP } from 'node:net';
import { z } from 'zod';
import { utc } from './usage/calendar.ts';
import { linkChecks } from './checks/options.ts';
import { linkType, wans_max } from '../../src/contract/kit.ts';

/** Also of the kernel: an interface name has 15 bytes at most. */
const interfaceName = z.string().min(1).max(15);
const ip = z.string().refine((text) => isIP(text) !== 0, 'must be an IPv4 or IPv6 address, not a name');
const port = z.int().min(1).max(65_535);

const https_port = 443;
const stun_port = 3_478;
const targets_max = 8;

const probeTarget = z.union([
  ip.transform((text) => ({ ip: text, port: https_port })),
  z.strictObject({
    ip: ip.describe('address that answers ICMP echo'),
    port: port.default(https_port).describe('TCP port that is tried where ICMP is filtered'),
  }),
]);

const stunServer = z.union([
  ip.transform((text) => ({ ip: text, port: stun_port })),
  z.strictObject({
    ip: ip.describe('address of the server'),
    port: port.default(stun_port).describe('UDP port of the server'),
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
  cap_warn_pct: z.number().min(1).max(100).default(80).describe('share of cap_gb that is worth an alarm'),
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
      .describe('addresses that are probed through every link; empty: no probes'),
    interval_s: z.number().min(0.1).max(3_600).default(2).describe('seconds between two probes of a link'),
    metered_interval_s: z
      .number()
      .min(0.1)
      .max(3_600)
      .default(10)
      .describe('seconds between two probes of a metered link'),
    timeout_ms: z.int().min(100).max(60_000).default(3_000).describe('how long an answer may take'),
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
    refresh_min: z
      .number()
      .min(1)
      .max(1_440)
      .default(30)
      .describe('minutes until a known address is asked for again'),
  })
  .prefault({});

const usage = z
  .strictObject({
    zone: z
      .string()
      .refine(isTimeZone, 'must be a time zone such as Europe/Berlin')
      .default(utc)
      .describe('IANA time zone of the day'),
    month_starts_on: z
      .int()
      .min(1)
      .max(31)
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

export const linksOptions = z
  .strictObject({
    interval_s: z.number().min(0.1).max(60).default(5).describe('seconds between two reports'),
    failover_s: z
      .number()
      .min(0)
      .max(3_600)
      .default(60)
      .describe(
        'seconds after which a dead link that keeps the default route while another link answers degrades the kit',
      ),
    wan: z
      .record(interfaceName, wan)
      .default({})
      .refine((all) => Object.keys(all).length <= wans_max, `at most ${wans_max} links`)
      .describe('WAN links by interface name, always listed; others are detected'),
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

/** Configuration of this link; an interface may have any name, also that of an object's built-in property. */
export function wanOptions({ wan }: LinksOptions, name: string): LinksOptions['wan'][string] | undefined {
  return Object.hasOwn(wan, name) ? wan[name] : undefined;
}

function isTimeZone(zone: string): boolean {
  if (zone === utc) return true;
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone }).format(0);
    return true;
  } catch {
    return false;
  }
}
