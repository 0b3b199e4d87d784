/** The options of the vendorcam driver. */
import { z } from 'zod';
import { hostOption } from '../../src/toolkit/driver/host-option.ts';
import {
  alarmPictureOption,
  certificateOption,
  numberIn,
  portOption,
  textUpTo,
  wholeIn,
} from '../../src/toolkit/driver/option-types.ts';

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
  name: textUpTo(100).describe('shown in the log and in status; assets use the names of the cameras'),
  host: hostOption.describe('host name or IP address of the camera, recorder or hub'),
  port: portOption.optional().describe('443, or 80 with tls: false'),
  tls: z.boolean().default(true).describe('false: the password is sent without encryption'),
  legacy_tls: z
    .boolean()
    .default(false)
    .describe('accept TLS 1.0 and 1.1 of an old camera; the kit is then degraded'),
  certificate_sha256: certificateOption,
  allow_plain_rtsp: z
    .boolean()
    .default(false)
    .describe(
      'with certificate_sha256: fetch streams over rtsp:// too, which sends the password without TLS',
    ),
  alarm_picture: alarmPictureOption,
  rtsp_port: portOption
    .optional()
    .describe(
      'of its streams, where a router forwards another port to it; left out: as the device reports it',
    ),
  username: textUpTo(31).default('admin').describe('PTZ, settings and reboot need an administrator'),
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
  push_port: portOption.optional().describe('port of push; left out: as the device reports it, usually 9000'),
  channels: z
    .array(wholeIn(0, channels_max - 1))
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
  poll_s: numberIn(0.2, 60).default(2).describe('time between two polls of a host'),
  poll_slow_s: numberIn(0.2, 300)
    .default(5)
    .describe('the same while the host answers slowly or with errors'),
  heartbeat_s: numberIn(10, 3_600).default(300).describe('status is repeated after this time'),
  ptz_move_max_s: numberIn(0.2, 30).default(5).describe('every move of a camera is stopped after this time'),
});
export type VendorcamOptions = z.output<typeof vendorcamOptions>;

export function portOf({ port, tls }: Pick<HostOptions, 'port' | 'tls'>): number {
  return port ?? (tls ? 443 : 80);
}

function isUnique(texts: readonly string[]): boolean {
  return new Set(texts).size === texts.length;
}
