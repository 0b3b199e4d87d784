/** The options of the vendorradio driver. */
import { z } from 'zod';
import { hostOption } from '../../src/toolkit/driver/host-option.ts';
import { certificateOption, numberIn, portOption, textUpTo } from '../../src/toolkit/driver/option-types.ts';

/** Names of the commands, in the order in which they are shown. */
export const command_names = [
  'refresh',
  'identify',
  'scan',
  'set_txpower',
  'set_channel',
  'set_mesh_channel',
  'reboot',
] as const;
export type CommandName = (typeof command_names)[number];

const radios_max = 64;
const names_max = 256;

const name = textUpTo(100).describe('shown name; unique in this driver');
const host = hostOption.describe('host name or IP address of the radio');
const port = portOption.optional();
const mac = z
  .string()
  .regex(/^(?:[0-9A-Fa-f]{2}[:-]?){5}[0-9A-Fa-f]{2}$/u, 'must be a MAC address of 12 hexadecimal digits')
  .transform(macOf);
const device = z
  .string()
  .regex(/^[\w.-]{1,32}$/u, 'must be the name of an interface, such as wlan0')
  .optional();
const identity = mac
  .optional()
  .describe('MAC address from the label, only for a radio that does not report its own');
const primary_peer = mac
  .optional()
  .describe('the peer that the feed `radio` is about; the strongest one when left out');

const ubusRadio = z.strictObject({
  kind: z.literal('ubus').describe('OpenWrt and firmware made from it'),
  name,
  host,
  port: port.describe('443, or 80 with tls: false'),
  path: z
    .string()
    .max(100)
    .regex(/^\/[\x21-\x7e]*$/u, 'must begin with / and contain no spaces')
    .default('/ubus')
    .describe('of its ubus interface'),
  tls: z.boolean().default(true).describe('false: the password is sent without encryption'),
  certificate_sha256: certificateOption,
  profile: z
    .enum(['auto', 'openwrt', 'meshrider'])
    .default('auto')
    .describe('auto: detected from the firmware'),
  username: textUpTo(100).default('root').describe('use a separate account; see README'),
  password_file: z.string().min(1).describe('file that contains only the password'),
  device: device.describe('Wi-Fi interface; the mesh, else the access point, else the client when left out'),
  uci_radio: z
    .string()
    .regex(/^\w{1,32}$/u, 'must be the name of a section, such as radio0')
    .optional()
    .describe('wifi-device section of that interface, where the radio has several and does not report it'),
  identity,
  primary_peer,
  identify_led: z
    .string()
    .regex(/^[\w:.-]{1,64}$/u, 'must be a name in /sys/class/leds of the radio')
    .optional()
    .describe('LED that `identify` blinks; the command is not offered when left out'),
  commands: z
    .array(z.enum(command_names))
    .default([...command_names])
    .describe('commands to offer, if the radio has them and permits them'),
});
export type UbusRadio = z.output<typeof ubusRadio>;

const oid = z
  .string()
  .regex(/^1(?:\.\d{1,10}){2,40}$/u, 'must be an object identifier in digits, such as 1.3.6.1.2.1.1.5.0');
const scaledOid = z.union([
  oid,
  z.strictObject({
    oid,
    scale: z.number().describe('the value is multiplied by it, to reach the unit in the name'),
  }),
]);
/** What an OID may stand for; the units are those of the feeds. */
export const oid_names = [
  'rssi',
  'remote_rssi',
  'noise',
  'freq_mhz',
  'bandwidth_mhz',
  'txpower_dbm',
  'quality_pct',
  'tx_rate_bps',
  'rx_rate_bps',
  'temperature_c',
  'voltage',
] as const;
export type OidName = (typeof oid_names)[number];

const snmpRadio = z.strictObject({
  kind: z.literal('snmp').describe('any radio with an SNMP agent; read only'),
  name,
  host,
  port: port.describe('161'),
  version: z
    .literal([3, '3', '2c', 1, '1'])
    .default(3)
    .transform((version) => `${version}` as const)
    .describe('1 and 2c send the community without encryption; 1 only for radios that have no other'),
  community_file: z.string().min(1).optional().describe('1 and 2c: file that contains only the community'),
  username: textUpTo(32).optional().describe('3: name of the user'),
  auth_protocol: z.enum(['sha', 'sha256', 'sha512', 'md5']).default('sha').describe('3'),
  auth_password_file: z.string().min(1).optional().describe('3: without it nothing is authenticated'),
  priv_protocol: z.enum(['aes', 'des']).default('aes').describe('3'),
  priv_password_file: z.string().min(1).optional().describe('3: without it nothing is encrypted'),
  preset: z
    .enum(['auto', 'generic', 'openwrt', 'airos', 'airfiber', 'mikrotik'])
    .default('auto')
    .describe('which vendor OIDs are read; auto: by what the radio has'),
  oids: z
    .partialRecord(z.enum(oid_names), scaledOid)
    .default({})
    .describe('OIDs of figures, before those of the preset'),
  device: device.describe(
    'interface that is counted; that of the radio where the preset knows it, the first Wi-Fi, else the first Ethernet when left out',
  ),
  identity,
  primary_peer,
});
export type SnmpRadio = z.output<typeof snmpRadio>;

const radio = z.discriminatedUnion('kind', [ubusRadio, snmpRadio]).superRefine((options, context) => {
  if (options.kind !== 'snmp') return;
  const missing = (key: string, remedy: string): void => {
    context.addIssue({ code: 'custom', path: [key], message: remedy });
  };
  if (options.version !== '3' && options.community_file === undefined) {
    missing('community_file', `is needed for version ${options.version}`);
  }
  if (options.version === '3' && options.username === undefined)
    missing('username', 'is needed for version 3');
  if (options.priv_password_file !== undefined && options.auth_password_file === undefined) {
    missing(
      'auth_password_file',
      'is needed where priv_password_file is given: SNMP encrypts only what it authenticates',
    );
  }
});
export type RadioOptions = z.output<typeof radio>;

export const vendorradioOptions = z.strictObject({
  radios: z
    .array(radio)
    .min(1)
    .max(radios_max)
    .refine((radios) => isUnique(radios.map(({ name }) => name)), 'each radio needs a unique name')
    .refine(
      (radios) => isUnique(radios.map((each) => `${each.host.toLowerCase()} ${portOf(each)}`)),
      'two radios have the same address and port; list each radio once',
    )
    .describe('the radios of the kit'),
  poll_s: numberIn(0.1, 300).default(5).describe('time between two polls of a radio over ubus'),
  snmp_poll_s: numberIn(0.1, 300).default(10).describe('the same over SNMP'),
  heartbeat_s: numberIn(10, 3_600).default(60).describe('status is repeated after this time'),
  peers: z
    .enum(['feed', 'assets'])
    .default('feed')
    .describe(
      'assets: mesh peers that are no radio of this list are children of the radio that receives them',
    ),
  names: z
    .record(z.string(), textUpTo(100))
    .refine((names) => Object.keys(names).length <= names_max, `at most ${names_max} names`)
    .refine((names) => Object.keys(names).every((key) => mac.safeParse(key).success), {
      message: 'each key must be a MAC address',
    })
    .transform((names) => new Map(Object.entries(names).map(([key, value]) => [macOf(key), value])))
    .default(new Map())
    .describe('names of peers by MAC address'),
  rollback_s: numberIn(10, 300)
    .default(90)
    .describe('time in which a changed radio must answer with a peer; else it rolls back'),
});
export type VendorradioOptions = z.output<typeof vendorradioOptions>;

export function portOf(options: RadioOptions): number {
  if (options.kind === 'snmp') return options.port ?? 161;
  return options.port ?? (options.tls ? 443 : 80);
}

/** Normalizes to lower case with colons. */
export function macOf(text: string): string {
  return text
    .replaceAll(/[:-]/gu, '')
    .toLowerCase()
    .replaceAll(/(..)(?!$)/gu, '$1:');
}

function isUnique(texts: readonly string[]): boolean {
  return new Set(texts).size === texts.length;
}
