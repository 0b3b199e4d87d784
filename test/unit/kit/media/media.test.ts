import { createServer } from 'node:http';
import { once } from 'node:events';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { go2rtc } from '../../../../src/kit/media/go2rtc.ts';
import { createMedia, streamName, templateMedia } from '../../../../src/kit/media/media.ts';
import { texts } from '../../../../src/kit/media/texts.ts';
import { mediaMtx } from '../../../../src/kit/media/mediamtx.ts';
import type { MediaServer } from '../../../../src/kit/media/server.ts';
import { type FakeMediaMtx, startFakeMediaMtx } from '../../../fakes/services/fake-mediamtx.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { watchWhep } from '../../../support/cameras/whep-viewer.ts';

const asset_key = 'onvif:ACME:0123';
const name = streamName(asset_key);
const rtsp_url = 'rtsp://viewer:s3cret@192.0.2.7:554/sub';
const pace = { look_every_ms: 50, lost_after_ms: 200, port_every_ms: 100, port_again_ms: 100 };

const soon = async (holds: () => void): Promise<void> => vi.waitFor(holds, { timeout: 10_000 });

/** A registry of streams that ends with the test, and what it told. */
function keep(server: MediaServer) {
  const stopping = new AbortController();
  onTestFinished(() => stopping.abort());
  const log = recordingLog();
  const told: (string | null)[] = [];
  const media = createMedia({
    server,
    log,
    signal: stopping.signal,
    pace,
    onUrl: (key) => told.push(media.urlOf(key)),
  });
  return { media, log, told };
}

describe('streams on MediaMTX', () => {
  let server: FakeMediaMtx;
  beforeEach(async () => {
    server = await startFakeMediaMtx();
    onTestFinished(async () => server.stop());
  });
  const access = () => ({ api_url: server.api_url, viewer_url: server.viewer_url });

  it('adds the stream on demand and returns an address without credentials for viewers', async () => {
    const { media, told } = keep(mediaMtx(access()));
    media.want(asset_key, rtsp_url);
    expect(media.urlOf(asset_key)).toBeNull();
    await soon(() => expect(media.urlOf(asset_key)).toBe(`${server.viewer_url}/${name}/whep`));
    expect(server.paths.get(name)).toMatchObject({ source: rtsp_url, sourceOnDemand: true });
    expect(told).toEqual([`${server.viewer_url}/${name}/whep`]);
    expect(told.join(' ')).not.toContain('s3cret');
  });

  it('records where that is wanted, for as long as it is told, and then connects to the camera at all times', async () => {
    const { media } = keep(mediaMtx({ ...access(), recording: { kept_minutes: 30 } }));
    media.want(asset_key, rtsp_url);
    await soon(() => expect(media.urlOf(asset_key)).not.toBeNull());
    const recorded = { record: true, recordFormat: 'fmp4', recordDeleteAfter: '30m', sourceOnDemand: false };
    expect(server.paths.get(name)).toMatchObject({ source: rtsp_url, ...recorded });
    await soon(() => expect(server.requests.filter((r) => r.startsWith('GET')).length).toBeGreaterThan(2));
    expect(server.requests.filter((r) => r.startsWith('POST'))).toHaveLength(1);
  });

  it('serves video to a WebRTC viewer of that address', { timeout: 20_000 }, async () => {
    const { media } = keep(mediaMtx(access()));
    media.want(asset_key, rtsp_url);
    await soon(() => expect(media.urlOf(asset_key)).not.toBeNull());
    expect(await watchWhep(media.urlOf(asset_key) ?? '', 10)).toBeGreaterThanOrEqual(10);
  });

  it('adds the stream again after the server was restarted and has forgotten it, without news for viewers', async () => {
    const { media, told } = keep(mediaMtx(access()));
    media.want(asset_key, rtsp_url);
    await soon(() => expect(server.paths.has(name)).toBe(true));
    await server.stop();
    await server.start();
    await soon(() => expect(server.paths.has(name)).toBe(true));
    expect(told).toHaveLength(1);
  });

  it('does not touch a stream that is right already, so that no viewer is interrupted', async () => {
    const { media } = keep(mediaMtx(access()));
    media.want(asset_key, rtsp_url);
    await soon(() => expect(server.requests.filter((r) => r.startsWith('GET')).length).toBeGreaterThan(3));
    expect(server.requests.filter((r) => r.startsWith('POST'))).toHaveLength(1);
  });

  it('replaces the stream when the password of the camera was changed', async () => {
    const { media } = keep(mediaMtx(access()));
    media.want(asset_key, rtsp_url);
    await soon(() => expect(server.paths.has(name)).toBe(true));
    media.want(asset_key, 'rtsp://viewer:other@192.0.2.7:554/sub');
    await soon(() =>
      expect(server.paths.get(name)?.['source']).toBe('rtsp://viewer:other@192.0.2.7:554/sub'),
    );
    expect(media.urlOf(asset_key)).not.toBeNull();
  });

  it('withdraws the address while the server is unreachable, logs it once, and restores it', async () => {
    const { media, log } = keep(mediaMtx(access()));
    media.want(asset_key, rtsp_url);
    await soon(() => expect(media.urlOf(asset_key)).not.toBeNull());
    await server.stop();
    await soon(() => expect(media.urlOf(asset_key)).toBeNull());
    expect(log.lines.filter(({ sentence }) => sentence.includes('API unreachable'))).toHaveLength(1);
    await server.start();
    await soon(() => expect(media.urlOf(asset_key)).not.toBeNull());
    expect(log.lines.filter(({ sentence }) => sentence.includes('API connection restored'))).toHaveLength(1);
  });

  it('removes the stream of a removed asset', async () => {
    const { media } = keep(mediaMtx(access()));
    media.want(asset_key, rtsp_url);
    await soon(() => expect(server.paths.has(name)).toBe(true));
    media.want(asset_key, null);
    await soon(() => expect(server.paths.has(name)).toBe(false));
    expect(media.urlOf(asset_key)).toBeNull();
  });

  it('logs once why the server refuses a stream, without its credentials, and serves the others', async () => {
    server.refusal = `invalid source '${rtsp_url}'`;
    const { media, log } = keep(mediaMtx(access()));
    media.want(asset_key, rtsp_url);
    await soon(() => expect(log.lines.some(({ sentence }) => sentence.includes('rejected'))).toBe(true));
    expect(JSON.stringify(log.lines)).not.toContain('s3cret');
    expect(media.urlOf(asset_key)).toBeNull();
    server.refusal = undefined;
    await soon(() => expect(media.urlOf(asset_key)).not.toBeNull());
    expect(log.lines.filter(({ sentence }) => sentence.includes('rejected'))).toHaveLength(1);
  });

  // MediaMTX #2182, go2rtc #1498: a source that is fetched on demand looks ready whether the camera is there or not.
  it('tells a stream whose camera takes no RTSP connection from one that it has, and notices its return', async () => {
    const camera = createTcpServer((socket) => socket.resume());
    const listen = async (port: number) => once(camera.listen(port, '127.0.0.1'), 'listening');
    await listen(0);
    const { port } = camera.address() as AddressInfo;
    const { media } = keep(mediaMtx(access()));
    media.want(asset_key, `rtsp://viewer:s3cret@127.0.0.1:${port}/sub`);
    expect(media.healthOf(asset_key)).toBeUndefined();
    await soon(() => expect(media.healthOf(asset_key)).toEqual({ state: 'works' }));
    camera.close();
    const reason = texts.port_closed(port, 'connection refused');
    await soon(() => expect(media.healthOf(asset_key)).toMatchObject({ state: 'fails', reason }));
    await listen(port);
    await soon(() => expect(media.healthOf(asset_key)).toEqual({ state: 'works' }));
    camera.close();
  });

  it('tells why its server does not have a stream: it is refused, or the server is away', async () => {
    server.refusal = `invalid source '${rtsp_url}'`;
    const { media } = keep(mediaMtx(access()));
    media.want(asset_key, rtsp_url);
    await soon(() => expect(media.healthOf(asset_key)).toMatchObject({ state: 'fails' }));
    expect(JSON.stringify(media.healthOf(asset_key))).toMatch(/invalid source/u);
    expect(JSON.stringify(media.healthOf(asset_key))).not.toContain('s3cret');
    await server.stop();
    await soon(() => expect(JSON.stringify(media.healthOf(asset_key))).toContain('does not answer'));
  });

  it('uses the credentials of the API, and names the section when they are wrong', async () => {
    server.credentials = 'kit:right';
    const wrong = keep(mediaMtx({ ...access(), username: 'kit', password: 'wrong' }));
    wrong.media.want(asset_key, rtsp_url);
    await soon(() => expect(JSON.stringify(wrong.log.lines)).toContain('media section'));
    const right = keep(mediaMtx({ ...access(), username: 'kit', password: 'right' }));
    right.media.want(asset_key, rtsp_url);
    await soon(() => expect(right.media.urlOf(asset_key)).not.toBeNull());
  });

  it('hands no address to the server that is no RTSP stream', async () => {
    const { media, log } = keep(mediaMtx(access()));
    media.want(asset_key, 'exec:rm -rf /');
    expect(media.urlOf(asset_key)).toBeNull();
    expect(log.lines).toHaveLength(1);
    media.want('other', rtsp_url);
    await soon(() => expect(server.paths.size).toBe(1));
    expect(server.paths.has(name)).toBe(false);
  });
});

it.each([
  ['its list hides the login', 200],
  // app.PatchConfig of go2rtc: its file is read-only, or the configuration came as text (`-c '{...}'`).
  ['it cannot write its file', 400],
])(
  'adds the stream to go2rtc once, though %s, and advertises its WHEP address',
  async (_, changes_status) => {
    const known = new Map<string, string>();
    let [put, gets] = [0, 0];
    const api = createServer((request, response) => {
      const url = new URL(request.url ?? '/', 'http://localhost');
      const query = (key: string): string => url.searchParams.get(key) ?? '';
      if (request.method === 'PUT') known.set(query('name'), query('src'));
      if (request.method === 'PUT') put += 1;
      if (request.method === 'GET') gets += 1;
      if (request.method === 'DELETE') known.delete(query('src'));
      // internal/streams/api.go of go2rtc, since 1.9.11.
      const hidden = (source: string): string => source.replace(/:\/\/[\w%:]+@/u, '://***@');
      const list = [...known].map(([key, source]) => [key, { producers: [{ url: hidden(source) }] }]);
      if (request.method !== 'GET') response.statusCode = changes_status;
      response.end(request.method === 'GET' ? JSON.stringify(Object.fromEntries(list)) : '');
    });
    await new Promise<void>((resolve) => {
      api.listen(0, '127.0.0.1', resolve);
    });
    onTestFinished(() => {
      api.closeAllConnections();
      api.close();
    });
    const api_url = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
    const { media } = keep(go2rtc({ api_url, viewer_url: 'http://192.0.2.1:1984' }));
    media.want(asset_key, rtsp_url);
    await soon(() => expect(media.urlOf(asset_key)).toBe(`http://192.0.2.1:1984/api/webrtc?src=${name}`));
    expect(known.get(name)).toBe(rtsp_url);
    await soon(() => expect(gets).toBeGreaterThan(3));
    expect(put).toBe(1);
    const changed = rtsp_url.replace('s3cret', 'other');
    media.want(asset_key, changed);
    await soon(() => expect(known.get(name)).toBe(changed));
    media.want(asset_key, null);
    await soon(() => expect(known.size).toBe(0));
  },
);

it('fills the name of the stream into the template', () => {
  const told: string[] = [];
  const media = templateMedia('https://media.example.com/{name}/whep', (key) => told.push(key));
  media.want(asset_key, rtsp_url);
  media.want(asset_key, rtsp_url);
  expect(media.urlOf(asset_key)).toBe(`https://media.example.com/${name}/whep`);
  expect(told).toEqual([asset_key]);
});

it('gives different keys different names that are safe in a URL', () => {
  expect(streamName('a:b')).not.toBe(streamName('a/b'));
  expect(streamName('<kit_id>:../../x "y"')).toMatch(/^[A-Za-z0-9_-]+$/u);
});
