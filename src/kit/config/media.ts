/** The media section: the server on the kit that turns the cameras' RTSP streams into WebRTC. */
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { readSecret } from './secrets.ts';
import type { FaultList, Source } from './source.ts';

const httpUrl = z.url({ protocol: /^https?$/u, error: 'must be an http:// or https:// address' });
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
type MediaSection = z.output<typeof mediaSection>;

/** The section with the password in memory. */
export type MediaServerConfig =
  | Extract<MediaSection, { server: 'template' }>
  | (Omit<Exclude<MediaSection, { server: 'template' }>, 'password_file'> & {
      readonly password: string | undefined;
    });

/** Reads the password that the section names. Undefined when a fault was added. */
export async function readMedia(
  section: MediaSection,
  source: Source,
  faults: FaultList,
): Promise<MediaServerConfig | undefined> {
  if (section.server === 'template') return section;
  const { password_file, ...rest } = section;
  if (password_file === undefined) return { ...rest, password: undefined };
  const read = await readSecret(resolve(dirname(source.file), password_file), { secret: true });
  if ('fault' in read) {
    faults.add(['media', 'password_file'], read.fault);
    return undefined;
  }
  return { ...rest, password: read.value.trim() };
}
