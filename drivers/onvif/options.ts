/** The options of the onvif driver. */
import { z } from 'zod';
import { onvifAiType, type onvifFeeds, pictureFault } from '../../src/contract/feeds.ts';
import { bareFingerprint } from '../../src/toolkit/device/certificate-check.ts';
import { hostOption } from '../../src/toolkit/driver/host-option.ts';
import {
  alarmPictureOption,
  numberIn,
  portOption,
  textUpTo,
  wholeIn,
} from '../../src/toolkit/driver/option-types.ts';

const cameras_max = 64;
export const sources_max = 256;
/** The certificate's SHA-256 as `openssl x509 -fingerprint -sha256` prints it, with or without colons. */
const fingerprint = z
  .string()
  .transform((text) => bareFingerprint(text))
  .refine((text) => /^[0-9a-f]{64}$/u.test(text), 'must be the 64 hexadecimal digits of a SHA-256');

const cameraOptions = z
  .strictObject({
    name: textUpTo(200).describe('shown name; unique in this driver'),
    host: hostOption.describe('address or host name of the camera'),
    port: portOption.optional().describe('of its ONVIF service; 80, with tls 443'),
    rtsp_port: portOption
      .optional()
      .describe(
        'of its streams, where a router forwards another port to it; left out: as the camera reports it',
      ),
    path: z
      .string()
      .max(200)
      .regex(/^\/[\x21-\x7e]*$/u, 'must begin with / and contain no spaces')
      .default('/onvif/device_service')
      .describe('of its device service'),
    username: textUpTo(200).optional().describe('ONVIF user; left out: the camera requires no login'),
    password_file: z
      .string()
      .min(1)
      .optional()
      .describe('file that contains the password, readable for the connector only'),
    auth: z
      .enum(['auto', 'ws_security', 'digest'])
      .default('auto')
      .describe(
        'how to log in; auto tries WS-Security, HTTP digest (with tls also Basic), and WS-Security with the clock of the gateway',
      ),
    tls: z
      .strictObject({
        fingerprint: fingerprint
          .optional()
          .describe('SHA-256 of the certificate of the camera; needed where it is self-signed'),
        legacy: z
          .boolean()
          .default(false)
          .describe('accept TLS 1.0 and 1.1 of an old camera; the kit is then degraded'),
      })
      .optional()
      .describe('use HTTPS; plain HTTP when left out'),
    allow_plain_rtsp: z
      .boolean()
      .default(false)
      .describe('with tls: fetch the stream over rtsp:// too, which sends the password without TLS'),
    events: z
      .enum(['auto', 'pull', 'webhook', 'off'])
      .default('auto')
      .describe(
        'how events are received; auto pulls, or uses the webhook where the camera cannot be pulled, and the other way round',
      ),
    sources: z
      .array(
        z.strictObject({
          token: textUpTo(64).describe("the camera's token of the video source"),
          name: textUpTo(200).optional().describe('shown name; that of the camera with a number'),
        }),
      )
      .min(1)
      .max(sources_max)
      .optional()
      .describe(
        'which video sources of a recorder, an encoder or a camera with several lenses are assets; all',
      ),
    alarm_picture: alarmPictureOption,
    identity: z
      .string()
      .regex(/^[\w.-]{1,64}$/u, 'letters, digits, dot, dash and underscore')
      .optional()
      .describe(
        'identity of the camera, in place of its serial number or MAC address; for cameras that share a serial number',
      ),
  })
  .refine(({ username, password_file }) => (username === undefined) === (password_file === undefined), {
    path: ['password_file'],
    error: 'username and password_file belong together: set both or neither',
  });
export type CameraOptions = z.output<typeof cameraOptions>;

/** Feeds of what detectors report. */
export const event_feeds = [
  'motion',
  'ai_detection',
  'tamper',
  'doorbell',
  'digital_input',
  'sound',
  'picture_fault',
  'storage_fault',
] as const satisfies readonly (keyof typeof onvifFeeds)[];

const events_max = 128;
const event_types: Readonly<Record<string, readonly string[]>> = {
  ai_detection: onvifAiType.options,
  picture_fault: pictureFault.options,
};

const eventOptions = z
  .strictObject({
    topic: textUpTo(1_024).describe(
      'the topic or its end, as `kit-connector status` shows it; prefixes such as tns1: do not count',
    ),
    feed: z
      .enum([...event_feeds, 'none'])
      .describe('where it is published; none: it is no event for anybody'),
    type: z
      .enum([...onvifAiType.options, ...pictureFault.options])
      .optional()
      .describe('what is seen, of ai_detection, or what is wrong, of picture_fault'),
    item: textUpTo(200)
      .optional()
      .describe(
        'name of the item that holds the state; left out: State, IsMotion and their like, and without any the event lasts 5 s',
      ),
    inverted: z.boolean().default(false).describe('true means that all is well, as of a contact that opens'),
    camera: textUpTo(200).optional().describe('name of the only camera that it is for; left out: all'),
  })
  .superRefine(({ feed, type }, context) => {
    const types = event_types[feed];
    if (type === undefined ? feed !== 'picture_fault' : types?.includes(type) === true) return;
    const message =
      types === undefined
        ? `belongs to no ${feed}, which has no types; remove it`
        : `is none of ${feed}; write one of ${types.join(', ')}`;
    context.addIssue({ code: 'custom', path: ['type'], message });
  });

const driverOptions = z.strictObject({
  cameras: z
    .array(cameraOptions)
    .min(1)
    .max(cameras_max)
    .superRefine((cameras, context) => {
      for (const [index, camera] of cameras.entries()) {
        const earlier = cameras.findIndex((each) => isTwin(each, camera));
        if (earlier === index) continue;
        const message = `has the name or the address of cameras[${earlier}]; list each camera once`;
        context.addIssue({ code: 'custom', path: [index, 'name'], message });
      }
    })
    .describe('the cameras of this driver'),
  heartbeat_s: numberIn(5, 3_600).default(60).describe('seconds between two status messages'),
  pull_s: numberIn(1, 60)
    .default(20)
    .describe(
      'how long a camera may hold a pull without an event, less where pulls are cut; a silent camera is detected 8 s later',
    ),
  motion_hold_max_s: numberIn(1, 3_600).default(60).describe('unconfirmed motion is cleared after this time'),
  ptz: z
    .strictObject({
      move_s: numberIn(0.2, 10).default(1).describe('every ptz_move ends after so many seconds'),
    })
    .prefault({}),
  webhook: z
    .strictObject({
      listen: z.string().min(1).default('0.0.0.0').describe('address on which cameras may call'),
      port: wholeIn(0, 65_535).default(0).describe('0: any free port'),
      address: z
        .string()
        .min(1)
        .optional()
        .describe('host given to cameras; left out: the address of the gateway on the connection'),
    })
    .prefault({})
    .describe('opened only when a camera cannot be pulled'),
  events: z
    .array(eventOptions)
    .max(events_max)
    .default([])
    .describe('gives a meaning to topics of events, before those that are known'),
  discovery: z
    .strictObject({
      interval_s: wholeIn(0, 86_400).default(0).describe('0: never; else seconds between two searches'),
      device: textUpTo(15).optional().describe('network interface to search; all of them'),
    })
    .prefault({})
    .describe('searches for cameras that are not configured and shows them in the status'),
});

export const onvifOptions = driverOptions.superRefine(({ cameras, events }, context) => {
  for (const [index, { camera }] of events.entries()) {
    if (camera === undefined || cameras.some(({ name }) => name === camera)) continue;
    const message = `is "${camera}", which no camera of this driver is called; write the name of one, or remove the key`;
    context.addIssue({ code: 'custom', path: ['events', index, 'camera'], message });
  }
});
export type OnvifOptions = z.output<typeof onvifOptions>;

export function portOf({ port, tls }: Pick<CameraOptions, 'port' | 'tls'>): number {
  return port ?? (tls ? 443 : 80);
}

function isTwin(a: CameraOptions, b: CameraOptions): boolean {
  const isSamePlace = a.host === b.host && portOf(a) === portOf(b) && a.path === b.path;
  return a.name === b.name || isSamePlace;
}
