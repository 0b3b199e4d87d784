/** The options of the vendorcam driver. */
import { z } from 'zod';
import { hostOption } from '../../src/toolkit/driver/host-option.ts';
import type { BoundEntry } from '../../src/toolkit/driver/identity-bindings.ts';

/** Names of the commands, in the order in which they are shown. */
export const command_names = [
  'ptz_move',
  'zoom',
  'ptz_preset',
  'snapshot',
  'siren',
  'light',
  'set_motion_detection',
  'reboot',
] as const;
export type CommandName = (typeof command_names)[number];

const hosts_max = 32;
const channels_max = 64;
/** The cameras' own limit. */
export const password_chars_max = 31;

const hostOptions = z.strictObject({
  name: z
    .string()
    .min(1)
    .max(100)
    .describe('shown in the log and in status; assets use the names of the cameras'),
  host: hostOption.describe('host name or IP address of the camera, recorder or hub'),
  port: z.int().min(1).max(65_535).optional().describe('443, or 80 with tls: false'),
  tls: z.boolean().default(true).describe('false: the password is sent without encryption'),
  legacy_tls: z
    .boolean()
    .default(false)
    .describe('accept TLS 1.0 and 1.1 of an old camera; the kit is then degraded'),
  certificate_sha256: z
    .string()
    .regex(/^(?:[0-9A-Fa-f]{2}:?){32}$/u, 'must be the 64 hexadecimal digits of a SHA-256 fingerprint')
    .optional()
    .describe('the only certificate to accept; the one of the first contact when left out'),
  allow_plain_rtsp: z
    .boolean()
    .default(false)
    .describe(
      'with certificate_sha256: fetch streams over rtsp:// too, which sends the password without TLS',
    ),
  alarm_picture: z
    .boolean()
    .default(false)
    .describe('send a small picture (24 KiB at most) with each alarm; not on metered links'),
  rtsp_port: z
    .int()
    .min(1)
    .max(65_535)
    .optional()
    .describe(
      'of its streams, where a router forwards another port to it; left out: as the device reports it',
    ),
  username: z
    .string()
    .min(1)
    .max(31)
    .default('admin')
    .describe('PTZ, settings and reboot need an administrator'),
  password_file: z.string().min(1).describe('file that contains only the password'),
  identity: z
    .string()
    .regex(/^[A-Za-z0-9_-]+$/u)
    .max(64)
    .optional()
    .describe('serial number from the label, only for a device that reports neither a UID nor a MAC address'),
  push: z
    .enum(['auto', 'always', 'never'])
    .default('auto')
    .describe(
      'receive events from its own port as they happen; auto: not with certificate_sha256, since that port has no TLS',
    ),
  push_port: z
    .int()
    .min(1)
    .max(65_535)
    .optional()
    .describe('port of push; left out: as the device reports it, usually 9000'),
  channels: z
    .array(
      z
        .int()
        .min(0)
        .max(channels_max - 1),
    )
    .optional()
    .describe('channels of a recorder to serve, from 0; all when left out'),
  commands: z
    .array(z.enum(command_names))
    .default([...command_names])
    .describe('commands to offer, if the device has them'),
});
export type HostOptions = z.output<typeof hostOptions>;

export const vendorcamOptions = z.strictObject({
  hosts: z
    .array(hostOptions)
    .min(1)
    .max(hosts_max)
    .refine((hosts) => isUnique(hosts.map(({ name }) => name)), 'each host needs a unique name')
    .refine(
      (hosts) => isUnique(hosts.map((host) => `${host.host.toLowerCase()} ${portOf(host)}`)),
      'two hosts have the same address and port; list each device once',
    )
    .describe('cameras, recorders and hubs'),
  poll_s: z.number().min(0.2).max(60).default(2).describe('time between two polls of a host'),
  poll_slow_s: z
    .number()
    .min(0.2)
    .max(300)
    .default(5)
    .describe('the same while the host answers slowly or with errors'),
  heartbeat_s: z.number().min(10).max(3_600).default(300).describe('status is repeated after this time'),
  ptz_move_max_s: z
    .number()
    .min(0.2)
    .max(30)
    .default(5)
    .describe('every move of a camera is stopped after this time'),
});
export type VendorcamOptions = z.output<typeof vendorcamOptions>;

/** What the identity of a device is bound to. */
export function entryOf(camera: HostOptions): BoundEntry {
  const { name, host, identity } = camera;
  return { name, place: [`${host}:${portOf(camera)}`, identity ?? []].flat().join(' ') };
}

export function portOf({ port, tls }: Pick<HostOptions, 'port' | 'tls'>): number {
  return port ?? (tls ? 443 : 80);
}

function isUnique(texts: readonly string[]): boolean {
  return new Set(texts).size === texts.length;
}
