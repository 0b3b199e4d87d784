/** Media servers as people met them: what the kit makes of the answer to an offer, and how it ends the viewer. Each line has its report. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { go2rtc } from '../../../../src/kit/media/go2rtc.ts';
import { templateServer } from '../../../../src/kit/media/media.ts';
import { mediaMtx } from '../../../../src/kit/media/mediamtx.ts';
import type { MediaServer } from '../../../../src/kit/media/server.ts';
import { texts } from '../../../../src/kit/media/texts.ts';

interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

const sdp = 'v=0\r\n';
const { signal } = new AbortController();
const session = '11111111-1111-4111-8111-111111111111';
let answers: Readonly<Record<string, Answer>> = {};
const requests: string[] = [];
const server = createServer((request, response) => {
  const asked = `${request.method} ${request.url}`;
  requests.push(asked);
  const { status, headers = {}, body = '' } = answers[asked] ?? { status: 404 };
  request.resume().once('end', () => response.writeHead(status, headers).end(body));
});
let url = '';
beforeEach(async () => {
  requests.length = 0;
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

type Watcher = Pick<MediaServer, 'watch' | 'leave'>;
const kinds = {
  mediamtx: (path: string): Watcher => mediaMtx({ api_url: url, viewer_url: url + path }),
  go2rtc: (path: string): Watcher => go2rtc({ api_url: url, viewer_url: url + path }),
  template: (path: string): Watcher => templateServer(`${url}${path}/{name}/whep`),
} as const;

const created = (headers: Readonly<Record<string, string>>): Answer => ({ status: 201, headers, body: sdp });
const kick = `POST /v3/webrtcsessions/kick/${session}`;

describe('a viewer is ended at the media server', () => {
  it.each<{
    readonly report: string;
    readonly kind: keyof typeof kinds;
    readonly path?: string;
    readonly answers: Readonly<Record<string, Answer>>;
    readonly ends: string | undefined;
  }>([
    {
      report:
        'https://github.com/bluenviron/mediamtx/issues/3177: Location is relative to the path of the offer',
      kind: 'template',
      answers: { 'POST /cam/whep': created({ location: 'whep/a' }), 'DELETE /cam/whep/a': { status: 200 } },
      ends: 'DELETE /cam/whep/a',
    },
    {
      report: 'https://github.com/Eyevinn/whip/issues/115: Location is a path of the server',
      kind: 'template',
      answers: { 'POST /cam/whep': created({ location: '/live/a' }), 'DELETE /live/a': { status: 200 } },
      ends: 'DELETE /live/a',
    },
    {
      report:
        'https://github.com/open-nvr/open-nvr/pull/487: a proxy hides the root that Location is relative to',
      kind: 'mediamtx',
      path: '/webrtc',
      answers: {
        'POST /webrtc/cam/whep': created({ location: '/cam/whep/secret', id: session }),
        'DELETE /cam/whep/secret': { status: 405 },
        [kick]: { status: 200 },
      },
      ends: kick,
    },
    {
      report: 'https://github.com/bluenviron/mediamtx/issues/5096: the session has timed out already',
      kind: 'mediamtx',
      answers: {
        'POST /cam/whep': created({ location: '/cam/whep/secret', id: session }),
        [kick]: { status: 404, body: '{"status":"error","error":"session not found"}' },
      },
      ends: kick,
    },
    {
      report: 'https://github.com/AlexxIT/go2rtc/issues/1315: there is no Location',
      kind: 'go2rtc',
      answers: { 'POST /api/webrtc?src=cam': created({}) },
      ends: undefined,
    },
    {
      report: 'a Location of another server is none of ours',
      kind: 'template',
      answers: { 'POST /cam/whep': created({ location: 'http://127.0.0.1:9/secret' }) },
      ends: undefined,
    },
  ])('$report', async ({ kind, path = '', answers: given, ends }) => {
    answers = given;
    const watcher = kinds[kind](path);
    const viewing = await watcher.watch('cam', sdp, signal);
    expect(viewing.answer).toBe(sdp);
    await watcher.leave(viewing, signal);
    expect(requests[1]).toBe(ends);
  });
});

describe('an offer is refused with what is wrong and what to do', () => {
  const whep = 'POST /cam/whep';
  it.each<{
    readonly report: string;
    readonly answer: Answer;
    readonly refused: string;
    readonly reason: string;
  }>([
    {
      report: 'https://github.com/bluenviron/mediamtx/issues/4913: H.265 in a browser that cannot',
      answer: { status: 400, body: '{"status":"error","error":"codecs not supported by client"}' },
      refused: 'codec',
      reason: texts.codec('codecs not supported by client'),
    },
    {
      report: 'https://github.com/bluenviron/mediamtx/issues/3956: the camera sends nothing for WebRTC',
      answer: { status: 400, body: '{"error":"the stream doesn\'t contain any supported codec"}' },
      refused: 'codec',
      reason: texts.codec("the stream doesn't contain any supported codec"),
    },
    {
      report: 'https://github.com/AlexxIT/go2rtc/issues/1240: go2rtc says the same with 500',
      answer: { status: 500, body: 'streams: codecs not matched: video:H265 => video:H264\n' },
      refused: 'codec',
      reason: texts.codec('streams: codecs not matched: video:H265 => video:H264'),
    },
    {
      report: 'https://github.com/bluenviron/mediamtx/issues/4773: viewers need a login',
      answer: { status: 401, body: '{"status":"error","error":"authentication error"}' },
      refused: 'unavailable',
      reason: texts.viewer_login,
    },
    {
      report: 'https://github.com/wish-wg/webrtc-http-ingest-protocol/issues/143: 307 to another address',
      answer: { status: 307, headers: { location: 'https://media.lan:8889/cam/whep' } },
      refused: 'unavailable',
      reason: texts.redirected('https://media.lan:8889/cam/whep'),
    },
    {
      report:
        'https://github.com/bluenviron/mediamtx/issues/1883: 404 without a word, as for a slash too many',
      answer: { status: 404 },
      refused: 'unavailable',
      reason: 'the camera gives the media server no stream',
    },
    {
      report: 'https://github.com/wish-wg/webrtc-http-ingest-protocol/issues/143: 503 under load',
      answer: { status: 503, headers: { 'retry-after': '5' }, body: 'overloaded' },
      refused: 'unavailable',
      reason: 'the media server answered 503 (overloaded)',
    },
  ])('$report', async ({ answer, refused, reason }) => {
    answers = { [whep]: answer };
    const watched = kinds.mediamtx('').watch('cam', sdp, signal);
    await expect(watched).rejects.toMatchObject({ name: 'OfferRefused', refused, message: reason });
    expect(requests).toEqual([whep]);
  });
});

it('counts the headers of UDP and IP, which MediaMTX leaves out, by its new and its older names', async () => {
  const old = { bytesSent: 1_000, rtpPacketsSent: 10, rtcpPacketsSent: 1 };
  const items = [
    { id: 'new', ...old, outboundBytes: 2_000, outboundRTPPackets: 20, outboundRTCPPackets: 2 },
    { id: 'old', ...old },
  ];
  const list = 'GET /v3/webrtcsessions/list?itemsPerPage=1000';
  answers = { [list]: { status: 200, body: JSON.stringify({ itemCount: 2, pageCount: 1, items }) } };
  const sent = await mediaMtx({ api_url: url, viewer_url: url }).sent?.(signal);
  expect([...(sent ?? [])]).toEqual([
    ['new', 2_000 + 22 * 28],
    ['old', 1_000 + 11 * 28],
  ]);
});
