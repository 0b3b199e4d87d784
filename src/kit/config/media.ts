/** The media section: the server on the kit that turns the cameras' RTSP streams into WebRTC. */
import { z } from 'zod';
import { linkType } from '../../contract/kit.ts';
import { namedSecret } from './secrets.ts';
import type { KeyPath, Reading } from './source.ts';

const httpUrl = z.url({ protocol: /^https?$/u, error: 'write an http:// or https:// address' });
const path = z.string().min(1);

const server = {
  viewer_url: httpUrl.describe('where viewers reach the server, such as http://192.168.1.1:8889'),
  username: z.string().min(1).optional().describe('of the API, if it requires one'),
  password_file: path.optional().describe('holds the password of the API and nothing else (chmod 640)'),
};

export const mediaSection = z.discriminatedUnion('server', [
  z.strictObject({
    server: z.literal('mediamtx'),
    api_url: httpUrl.default('http://127.0.0.1:9997').describe('the control API; api: yes in mediamtx.yml'),
    ...server,
    recording: z
      .strictObject({
        playback_url: httpUrl
          .default('http://127.0.0.1:9996')
          .describe('the playback server; playback: yes in mediamtx.yml'),
        kept_minutes: z
          .int()
          .min(5)
          .max(1_440)
          .default(30)
          .describe('how long the server keeps what it records; 30 minutes of 4 Mbit/s are 900 MB a camera'),
        before_s: z.number().min(1).max(60).default(10).describe('seconds of a clip before its moment'),
        after_s: z.number().min(1).max(60).default(10).describe('seconds of a clip after it'),
        alarms: z.boolean().default(true).describe('alarms get clips without an order'),
      })
      .optional()
      .describe(
        'the server records all cameras, and clips of them are files for the cloud; left out: it records nothing',
      ),
    ice_servers: z
      .array(
        z.strictObject({
          url: z
            .string()
            .regex(
              /^(?:stuns?|turns?):[^\s@]+$/u,
              'is not such an address; write it like stun:stun.example.com:3478',
            )
            .describe('such as stun:turn.example.com:3478, or turn:turn.example.com:3478?transport=tcp'),
          username: z
            .string()
            .min(1)
            .optional()
            .describe('of a TURN server; AUTH_SECRET: the password is the secret of use-auth-secret'),
          password_file: path.optional().describe('holds its password and nothing else (chmod 640)'),
        }),
      )
      .max(8)
      .default([])
      .describe(
        'for viewers beyond the network of the kit, set as webrtcICEServers2: TURN over TCP where no UDP goes out; one STUN server where public_ip.stun of links is not set, which costs each viewer a round trip',
      ),
  }),
  z.strictObject({
    server: z.literal('go2rtc'),
    api_url: httpUrl.default('http://127.0.0.1:1984'),
    ...server,
  }),
  z.strictObject({
    server: z.literal('template'),
    url: httpUrl
      .regex(/\{name\}/u, 'holds no {name}; put it where the name of the stream belongs')
      .describe(
        'WHEP address of streams that are set up by hand, such as http://192.168.1.1:8889/{name}/whep',
      ),
  }),
]);

/** The section with its passwords in memory. */
export type MediaServerConfig = Awaited<ReturnType<typeof readMedia>>;

const allowed = z.enum(['never', 'on_demand', 'free']);

/** What viewers beyond the network of the kit may cost. */
export const videoSection = z.strictObject({
  metered: allowed
    .default('on_demand')
    .describe('over links of uplink.metered: never; on_demand: within the two limits; free: without'),
  links: z
    .partialRecord(linkType, allowed)
    .default({})
    .describe('the same for a type of link, whether it is metered or not'),
  seconds_max: z
    .int()
    .min(1)
    .max(86_400)
    .default(600)
    .describe('on_demand: seconds of video of all viewers in a day (UTC)'),
  mb_max: z
    .number()
    .min(0.1)
    .max(1_000_000)
    .default(100)
    .describe('on_demand: megabytes of video of all viewers in a day (UTC)'),
});

/** Reads the passwords that the section names. */
export async function readMedia(section: z.output<typeof mediaSection>, reading: Reading) {
  if (section.server === 'template') return section;
  const secretOf = async (file: string | undefined, ...at: KeyPath): Promise<string | undefined> =>
    (await namedSecret(file, ['media', ...at, 'password_file'], reading))?.trim();
  const { password_file, ...rest } = section;
  const password = await secretOf(password_file);
  const ice_servers = [];
  for (const [at, { url, username = '', password_file }] of ('ice_servers' in section
    ? section.ice_servers
    : []
  ).entries())
    ice_servers.push({ url, username, password: (await secretOf(password_file, 'ice_servers', at)) ?? '' });
  return { ...rest, password, ice_servers };
}
