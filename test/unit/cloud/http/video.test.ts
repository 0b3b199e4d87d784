/** Viewers at the service: offer and answer, the servers that help them, and what they are told when there is no video. */
import { createHmac } from 'node:crypto';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { channels, downTopic, upTopic } from '../../../../src/contract/topics.ts';
import {
  sdp_chars_max,
  type WhepAnswer,
  type WhepRequest,
  whepAnswer,
} from '../../../../src/contract/whep.ts';
import { relayed } from '../../../../src/cloud/video/relayed-assets.ts';
import { VideoRelay } from '../../../../src/cloud/video/video-relay.ts';
import { openSqlite } from '../../../../src/cloud/sql/sqlite.ts';
import { sqlStore } from '../../../../src/cloud/store/sql-store.ts';
import { asset_id, kit_id, samples } from '../../../support/contract-samples.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

const secret = 'a secret of the TURN server';
const path = `/api/kits/${kit_id}/assets/${asset_id}/whep`;
const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const stop of stops.splice(0)) await stop();
});

const lan_url = 'http://192.168.1.1:8889/cam/whep';

/** A service with a kit that gives `answer` to each offer; null: none. */
async function open(answer: WhepAnswer | null, { whep_url = lan_url }: { whep_url?: string | null } = {}) {
  const requests: WhepRequest[] = [];
  const log = recordingLog();
  const relay: VideoRelay = new VideoRelay({
    async send(_, request) {
      requests.push(request);
      if (lab.broker.fault !== undefined) throw new Error(lab.broker.fault);
      if (answer === null || request.offer === null) return;
      relay.receive(upTopic(kit_id, channels.whep(request.id)), Buffer.from(JSON.stringify(answer)));
    },
    pass: undefined,
    log,
  });
  const lab: ServiceLab = await startServiceLab(kit_id, {
    store: relayed(sqlStore(openSqlite(':memory:'))),
    video: relay,
    video_settings: {
      stun: ['stun:turn.example.com:3478'],
      turn: { urls: ['turn:turn.example.com:3478?transport=tcp'], secret, ttl_s: 600 },
    },
    cors_origins: ['https://app.example.com'],
  });
  stops.push(async () => lab.stop());
  await lab.publish(channels.state, samples['kitState'] ?? {});
  await lab.publish(channels.asset(asset_id), { ...samples['announcement'], whep_url });
  const ask = async (
    method: string,
    at = path,
    init: { readonly body?: string | null; readonly headers?: Record<string, string> } = {},
  ) =>
    fetch(lab.url + at, {
      method,
      ...init,
      headers: { 'x-api-key': lab.key, 'content-type': 'application/sdp', ...init.headers },
    });
  const watch = async (offer = 'v=0\r\n') => ask('POST', path, { body: offer });
  return { lab, ask, watch, requests, relay, log };
}

describe('the video of an asset', () => {
  it('is found at the service, by the name under which the client reaches it', async () => {
    const { lab, ask } = await open({ answer: 'v=0\r\n' });
    const at = `/api/kits/${kit_id}/assets`;
    expect(await (await ask('GET', at)).json()).toMatchObject({ assets: [{ whep_url: lab.url + path }] });
    expect(await (await ask('GET', `${at}/${asset_id}`)).json()).toMatchObject({ whep_url: lab.url + path });
    const behind = await ask('GET', at, { headers: { 'x-forwarded-proto': 'https' } });
    expect(await behind.json()).toMatchObject({
      assets: [{ whep_url: lab.url.replace('http', 'https') + path }],
    });
  });

  it('is answered with 201, the answer of the kit, and where to end it', async () => {
    const { watch, ask, requests } = await open({ answer: 'v=0\r\nkit\r\n' });
    const response = await watch('v=0\r\nviewer\r\n');
    expect([response.status, response.headers.get('content-type')]).toEqual([201, 'application/sdp']);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(await response.text()).toBe('v=0\r\nkit\r\n');
    const [offered] = requests;
    expect(offered).toEqual({ id: offered?.id, asset_id, offer: 'v=0\r\nviewer\r\n' });
    const location = response.headers.get('location') ?? '';
    expect(location).toBe(`${path}/${offered?.id}`);
    expect((await ask('DELETE', location)).status).toBe(204);
    expect(requests[1]).toEqual({ id: offered?.id, asset_id, offer: null });
  });

  it('is ended at the kit when the viewer has gone before the answer came', async () => {
    const { lab, ask, requests, relay } = await open(null);
    const gone = new AbortController();
    const headers = { 'x-api-key': lab.key, 'content-type': 'application/sdp' };
    const init = { method: 'POST', headers, body: 'v=0', signal: gone.signal };
    const asked = fetch(lab.url + path, init).catch((error: unknown) => error);
    await vi.waitFor(() => expect(requests).toHaveLength(1));
    gone.abort();
    await asked;
    const id = requests[0]?.id ?? '';
    // Until it is answered the service has noticed the closed connection.
    await ask('OPTIONS');
    relay.receive(upTopic(kit_id, channels.whep(id)), Buffer.from('{"answer":"v=0"}'));
    await vi.waitFor(() => expect(requests[1]).toEqual({ id, asset_id, offer: null }));
  });

  it('names STUN and TURN servers, with a login that expires and that coturn accepts', async () => {
    const { watch, ask, lab, requests, log } = await open({ answer: 'v=0\r\n' });
    for (const response of [await watch(), await ask('OPTIONS')]) {
      const link = response.headers.get('link') ?? '';
      expect(link).toContain('<stun:turn.example.com:3478>; rel="ice-server"');
      const [, username = '', credential] =
        /<turn:turn.example.com:3478\?transport=tcp>; rel="ice-server"; username="([^"]+)"; credential="([^"]+)"; credential-type="password"/u.exec(
          link,
        ) ?? [];
      // turnserver(1), --use-auth-secret: usercombo is "timestamp:userid", password is base64(hmac-sha1(secret, usercombo)).
      expect(credential).toBe(createHmac('sha1', secret).update(username).digest('base64'));
      const left_s = Number(username.split(':')[0]) - Date.now() / 1_000;
      expect(left_s).toBeGreaterThan(590);
      expect(left_s).toBeLessThanOrEqual(600);
      for (const text of [JSON.stringify(requests), JSON.stringify(lab.log), JSON.stringify(log)])
        for (const hidden of [secret, credential ?? secret]) expect(text).not.toContain(hidden);
    }
    expect((await fetch(lab.url + path, { method: 'OPTIONS' })).headers.get('link')).toBeNull();
  });

  it('names the servers to a page of a configured origin, whose preflight request has none', async () => {
    const { ask, lab } = await open({ answer: 'v=0\r\n' });
    const origin = 'https://app.example.com';
    const own = await ask('OPTIONS', path, { headers: { origin } });
    expect(own.headers.get('access-control-allow-origin')).toBe(origin);
    expect(own.headers.get('link')).toContain('turn:');
    const headers = { origin, 'access-control-request-method': 'OPTIONS' };
    const preflight = await fetch(lab.url + path, { method: 'OPTIONS', headers });
    expect(preflight.headers.get('access-control-allow-methods')).toContain('OPTIONS');
    expect(preflight.headers.get('link')).toBeNull();
    const posted = await ask('POST', path, { body: 'v=0', headers: { origin } });
    expect(posted.headers.get('access-control-expose-headers')).toContain('Link');
  });

  it.each<{ readonly answer: WhepAnswer; readonly status: number; readonly type: string }>([
    { answer: { refused: 'no_stream', reason: 'no media server' }, status: 404, type: 'not-found' },
    { answer: { refused: 'link', reason: 'not over satellite' }, status: 403, type: 'link-forbids' },
    { answer: { refused: 'codec', reason: 'H265' }, status: 406, type: 'not-playable' },
    { answer: { refused: 'unavailable', reason: 'no answer' }, status: 503, type: 'unavailable' },
  ])('is refused with the reason of the kit: $type', async ({ answer, status, type }) => {
    const { watch } = await open(answer);
    const response = await watch();
    expect([response.status, response.headers.get('content-type')]).toEqual([
      status,
      'application/problem+json',
    ]);
    expect(await response.json()).toMatchObject({
      type: `/problems/${type}`,
      detail: 'reason' in answer ? answer.reason : '',
    });
  });

  it('is refused without asking the kit where it has none, or the kit is offline', async () => {
    const { lab, watch, requests } = await open({ answer: 'v=0' }, { whep_url: null });
    expect((await watch()).status).toBe(404);
    await lab.publish(channels.state, { ...samples['kitState'], online: false, reason: 'stopped' });
    expect(await (await watch()).json()).toMatchObject({ status: 503, detail: 'the kit is offline' });
    expect(requests).toEqual([]);
  });

  it('says that the broker does not have the kit', async () => {
    const { lab, watch } = await open({ answer: 'v=0' });
    lab.broker.fault = 'the kit is not connected to the broker';
    const problem: unknown = await (await watch()).json();
    expect(problem).toMatchObject({ status: 503 });
    expect(JSON.stringify(problem)).toContain(lab.broker.fault);
  });

  it.each([
    ['POST', 'application/json', '{}', 415],
    ['POST', 'application/sdp', 'v'.repeat(sdp_chars_max + 1), 413],
    ['PATCH', 'application/sdp', 'v=0', 405],
    ['GET', '', undefined, 405],
  ])('%s with %s %#', async (method, type, body, status) => {
    const { ask, requests } = await open({ answer: 'v=0' });
    const response = await ask(method, path, { body: body ?? null, headers: { 'content-type': type } });
    expect(response.status).toBe(status);
    expect(requests).toEqual([]);
  });

  it('belongs to those who may read the kit', async () => {
    const { lab, ask } = await open({ answer: 'v=0' });
    const others: readonly [string, number][] = [
      [await lab.giveKey({ kits: [] }), 404],
      [await lab.giveKey({ scopes: ['commands'] }), 403],
      ['', 401],
    ];
    for (const [key, status] of others) {
      const response = await ask('POST', path, { body: 'v=0', headers: { 'x-api-key': key } });
      expect(response.status).toBe(status);
    }
  });
});

describe('the relay of offers', () => {
  const request = (id: string): WhepRequest => ({ id, asset_id, offer: 'v=0' });

  it('gives up after 12 s, and ends what the kit may have begun', async () => {
    vi.useFakeTimers();
    const sent: WhepRequest[] = [];
    const relay = new VideoRelay({
      send: async (_, each) => void sent.push(each),
      pass: undefined,
      log: recordingLog(),
    });
    const watched = relay.watch(kit_id, request(asset_id)).catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(12_000);
    expect(await watched).toMatchObject({ kind: 'no-answer' });
    expect(sent.map(({ offer }) => offer)).toEqual(['v=0', null]);
  });

  it('passes what came to this replica to the one that waits', async () => {
    const relays: VideoRelay[] = [];
    for (const n of [0, 1]) {
      relays.push(
        new VideoRelay({
          send: async () => undefined,
          pass: async (text) => {
            expect(Buffer.byteLength(text)).toBeLessThan(7_900);
            relays[1 - n]?.receivePassed(text);
          },
          log: recordingLog(),
        }),
      );
    }
    const watched = relays[0]?.watch(kit_id, request(asset_id));
    await vi.waitFor(() => expect(watched).toBeDefined());
    const answer = whepAnswer.parse({
      answer: `v=0\r\n${'a=candidate:1 1 udp 2130706431 192.168.1.1 5000 typ host\r\n'.repeat(200)}`,
    });
    relays[1]?.receive(upTopic(kit_id, channels.whep(asset_id)), Buffer.from(JSON.stringify(answer)));
    expect(await watched).toEqual(answer);
  });

  it.each(['', '{', '{"answer":7}', '{"refused":"why"}'])(
    'refuses an answer that is none: %j',
    async (text) => {
      const relay: VideoRelay = new VideoRelay({
        send: async (_, { id }) => relay.receive(upTopic(kit_id, channels.whep(id)), Buffer.from(text)),
        pass: undefined,
        log: recordingLog(),
      });
      expect(await relay.watch(kit_id, request(asset_id))).toMatchObject({ refused: 'unavailable' });
    },
  );

  it('uses topics below the down and up of the kit alone', () => {
    expect(downTopic(kit_id, { kind: 'whep' })).toBe(`k1/${kit_id}/down/whep`);
    expect(upTopic(kit_id, channels.whep(asset_id))).toBe(`k1/${kit_id}/up/whep/${asset_id}`);
  });
});
