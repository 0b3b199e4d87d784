/** Deliveries of webhooks to a real receiver that misbehaves. */
import { Webhook } from 'standardwebhooks';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { channels } from '../../../../src/contract/topics.ts';
import { texts as platform_texts } from '../../../../src/platform/texts.ts';
import { texts } from '../../../../src/cloud/webhooks/texts.ts';
import { asset_id, kit_id } from '../../../support/contract-samples.ts';
import { idOf } from '../story.ts';
import { eventually } from '../../../support/eventually.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';
import {
  type Manner,
  startWebhookReceiver,
  type WebhookReceiver,
} from '../../../support/service/webhook-receiver.ts';

const settings = {
  allow: ['127.0.0.0/8', '::1/128'],
  allow_http: true,
  timeout_ms: 20_000,
  disable_after_ms: 3_600_000,
  random: () => 0,
  pauses: { message_ms: [100, 100], receiver_ms: { first: 50, max: 100 }, look_ms: 20 },
};
/** The tests ask often. */
const limits = { reads_per_s: 1_000, changes_per_s: 100, fixes_per_s: 50, map_per_s: 50 };
interface Registered {
  readonly id: string;
  readonly secret: string;
}

const start = async (webhooks: typeof settings) => startServiceLab(kit_id, { webhooks, limits });
let lab: ServiceLab;
let receiver: WebhookReceiver;
beforeEach(async () => {
  receiver = await startWebhookReceiver();
  lab = await start(settings);
});
afterEach(async () => {
  await lab.stop();
  await receiver.stop();
});

const ask = async (path: string, { method = 'GET', body }: { method?: string; body?: object } = {}) => {
  const headers = { 'x-api-key': lab.key, 'content-type': 'application/json' };
  const text = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(lab.url + path, { method, headers, ...text });
  return { status: response.status, body: (await response.json().catch(() => null)) as never };
};
const register = async (url = receiver.url): Promise<Registered> =>
  (await ask('/api/webhooks', { method: 'POST', body: { label: 'test', url, types: ['alarm'] } })).body;
const alarm = async (n = 0, asset: string = asset_id): Promise<void> =>
  lab.publish(channels.event(asset, 'motion'), { detected: true, n });
const counts = async ({ id }: Registered): Promise<Record<string, number>> => {
  const { body }: { body: { counts: Record<string, number> } } = await ask(`/api/webhooks/${id}`);
  const { accepted = 0, delivered = 0, waiting = 0, dead = 0, purged = 0 } = body.counts;
  expect(accepted).toBe(delivered + waiting + dead + purged);
  return body.counts;
};
const reach = async (webhook: Registered, wanted: object): Promise<void> =>
  eventually(`counts ${JSON.stringify(wanted)}`, async () => {
    const now = await counts(webhook);
    return Object.entries(wanted).every(([name, value]) => now[name] === value);
  });

/** The first delivery, once its signature is checked. */
function verified({ secret }: Pick<Registered, 'secret'>): unknown {
  const [{ headers, body } = { headers: {}, body: '' }] = receiver.received;
  const signed = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
  return new Webhook(secret).verify(body, signed);
}
/** Why messages were given up. */
const reasons = async ({ id }: Registered): Promise<readonly object[]> => {
  const { body }: { body: { messages: readonly object[] } } = await ask(`/api/webhooks/${id}/dead`);
  return body.messages;
};

describe('Deliveries', () => {
  it('are signed, and carry what happened', async () => {
    const webhook = await register();
    await alarm();
    await reach(webhook, { accepted: 1, delivered: 1 });
    expect(receiver.received[0]?.headers['content-type']).toBe('application/json');
    expect(verified(webhook)).toMatchObject({
      type: 'alarm',
      data: { kit_id, asset_id, feed: 'motion', message: { detected: true } },
    });
  });

  it.each<readonly [Manner, string]>([
    [500, texts.refused(500)],
    [400, texts.refused(400)],
    ['redirect', texts.redirected(307)],
    ['hang', texts.no_answer(1_000)],
    [{ slow_ms: 2_000 }, texts.no_answer(1_000)],
    ['reset', 'connection reset by peer'],
  ])('to a receiver that answers %j are repeated with the same id, and given up', async (manner, reason) => {
    receiver.state.manner = manner;
    await lab.stop();
    lab = await start({ ...settings, timeout_ms: 1_000 });
    const webhook = await register();
    await alarm();
    await reach(webhook, { accepted: 1, dead: 1 });
    expect(receiver.received).toHaveLength(3);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    const id = receiver.received[0]?.headers['webhook-id'];
    expect(await reasons(webhook)).toMatchObject([{ id, attempts: 3, reason: texts.gave_up(3, reason) }]);
  });

  it.each<readonly [string, Manner, string]>([
    ['headers', { endless: ['HTTP/1.1 200 OK\r\n', 'X-More: more\r\n'] }, texts.headers_too_large(16_384)],
    [
      'interim answers',
      { endless: ['', 'HTTP/1.1 103 Early Hints\r\n\r\n'] },
      platform_texts.interim_answers,
    ],
    [
      'another protocol',
      { endless: ['HTTP/1.1 101 Other\r\nUpgrade: other\r\nConnection: Upgrade\r\n\r\n', 'x'] },
      platform_texts.other_protocol,
    ],
    ['what is no HTTP', { endless: ['SSH-2.0-OpenSSH_9.2\r\n', 'more'] }, texts.no_http],
  ])(
    'to a receiver that sends %s without end are cut at once, with the reason',
    async (_, manner, reason) => {
      receiver.state.manner = manner;
      const webhook = await register();
      await alarm();
      await reach(webhook, { accepted: 1, dead: 1 });
      expect(await reasons(webhook)).toMatchObject([{ reason: texts.gave_up(3, reason) }]);
    },
  );

  it('succeed although the body of the answer has no end', async () => {
    receiver.state.manner = 'flood';
    const webhook = await register();
    await alarm();
    await reach(webhook, { delivered: 1 });
    expect(receiver.received).toHaveLength(1);
  });

  it('go on when the receiver is back, and the log has one line for each change', async () => {
    receiver.state.manner = 500;
    const webhook = await register();
    await alarm();
    await eventually('a failure', () => receiver.received.length > 0);
    receiver.state.manner = 200;
    await alarm(1);
    await reach(webhook, { accepted: 2, delivered: 2 });
    const lines = lab.log.lines.filter(({ sentence }) => sentence.includes('webhook'));
    expect(lines.map(({ sentence }) => sentence)).toEqual([texts.log_failing, texts.log_restored]);
  });

  it('never run more than four at once to one receiver', async () => {
    receiver.state.manner = { slow_ms: 100 };
    const webhook = await register();
    for (let n = 0; n < 24; n += 1) await alarm(n, idOf(n));
    await reach(webhook, { delivered: 24 });
    expect(receiver.state.open_max).toBe(4);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(24);
  });

  it.each<readonly [string, () => string]>([
    ['in seconds', () => '2'],
    // Of whole seconds: up to one less.
    ['by a time', () => new Date(Date.now() + 3_000).toUTCString()],
  ])('wait as long as the receiver asks for, %s', async (_, ask_for) => {
    receiver.state.manner = 503;
    receiver.state.retry_after = ask_for();
    const webhook = await register();
    await alarm();
    await eventually('a failure', () => receiver.received.length > 0);
    receiver.state.manner = 200;
    await reach(webhook, { delivered: 1 });
    const [first, second] = receiver.received;
    expect((second?.at_ms ?? 0) - (first?.at_ms ?? 0)).toBeGreaterThanOrEqual(1_900);
  });

  it('are tried out at once, signed, also while disabled, and count for nothing', async () => {
    const webhook = await register();
    const test = async () => (await ask(`/api/webhooks/${webhook.id}/test`, { method: 'POST' })) as object;
    const measured = { duration_ms: expect.any(Number) as number };
    expect(await test()).toEqual({ status: 200, body: { delivered: true, status: 200, ...measured } });
    expect(verified(webhook)).toMatchObject({
      type: 'test',
      data: { webhook_id: webhook.id },
    });
    receiver.state.manner = 410;
    expect(await test()).toMatchObject({
      body: { delivered: false, status: 410, reason: texts.refused(410) },
    });
    await ask(`/api/webhooks/${webhook.id}`, { method: 'PATCH', body: { enabled: false } });
    receiver.state.manner = 200;
    expect(await test()).toMatchObject({ body: { delivered: true } });
    expect(await counts(webhook)).toMatchObject({ accepted: 0, delivered: 0, missed: 0 });
  });

  it('end when the receiver answers 410', async () => {
    receiver.state.manner = 410;
    const webhook = await register();
    await alarm();
    await eventually('it is disabled', async () => {
      const { body }: { body: { status: string } } = await ask(`/api/webhooks/${webhook.id}`);
      return body.status === 'disabled';
    });
    await alarm(1);
    await reach(webhook, { accepted: 1, waiting: 1, missed: 1 });
    expect(receiver.received).toHaveLength(1);
    expect(lab.log.lines.map(({ sentence }) => sentence)).toContain(texts.log_disabled);
    receiver.state.manner = 200;
    await ask(`/api/webhooks/${webhook.id}`, { method: 'PATCH', body: { enabled: true } });
    await reach(webhook, { delivered: 1, waiting: 0 });
  });

  it('are made again from the dead-letter list, with the same id, until it is purged', async () => {
    receiver.state.manner = 500;
    const webhook = await register();
    await alarm();
    await alarm(1);
    await reach(webhook, { dead: 2 });
    receiver.state.manner = 200;
    const [id] = receiver.received.map(({ headers }) => String(headers['webhook-id']));
    const place = `/api/webhooks/${webhook.id}/dead`;
    expect((await ask(`${place}/replay`, { method: 'POST', body: { ids: [id] } })).body).toEqual({
      replayed: 1,
    });
    await reach(webhook, { delivered: 1, dead: 1 });
    expect(receiver.received.at(-1)?.headers['webhook-id']).toBe(id);
    expect((await ask(place, { method: 'DELETE' })).body).toEqual({ purged: 1 });
    await reach(webhook, { accepted: 2, delivered: 1, dead: 0, purged: 1 });
  });

  it('are signed with the new and the old secret after a rotation', async () => {
    const webhook = await register();
    const rotated: { body: Registered } = await ask(`/api/webhooks/${webhook.id}/secret`, { method: 'POST' });
    await alarm();
    await reach(webhook, { delivered: 1 });
    for (const each of [webhook, rotated.body]) expect(verified(each)).toBeDefined();
  });

  it('do not follow a name into a private network', async () => {
    await lab.stop();
    lab = await start({ ...settings, allow: [] });
    const webhook = await register(`http://localhost:${receiver.port}/hook`);
    await alarm();
    await reach(webhook, { dead: 1 });
    expect(receiver.received).toEqual([]);
    const reason = expect.stringContaining('no address outside private networks') as string;
    expect(await reasons(webhook)).toMatchObject([{ reason }]);
  });
});

describe('Registrations', () => {
  it('need the scope webhooks', async () => {
    const key = await lab.giveKey({ scopes: ['read', 'assets:write', 'commands'] });
    for (const method of ['GET', 'POST']) {
      const headers = { 'x-api-key': key, 'content-type': 'application/json' };
      const body = method === 'POST' ? { body: JSON.stringify({ label: 'x', url: receiver.url }) } : {};
      expect((await fetch(`${lab.url}/api/webhooks`, { method, headers, ...body })).status).toBe(403);
    }
  });

  it.each([
    [{ label: 'x', url: 'https://10.0.0.1/' }, '#/url'],
    [{ label: 'x', url: 'ftp://app.example.com/' }, '#/url'],
    [{ label: 'x', url: 'https://app.example.com/', kits: '*' }, '#/kits'],
    [{ label: 'x', url: 'https://app.example.com/', kits: [asset_id] }, '#/kits'],
    [{ label: 'x', url: 'https://app.example.com/', types: ['nonsense'] }, '#/types/0'],
  ])('refuse %j', async (body, pointer) => {
    expect(await ask('/api/webhooks', { method: 'POST', body })).toMatchObject({
      status: 422,
      body: { errors: [{ pointer }] },
    });
  });

  it('are those of the kits of a key, and show the secret once', async () => {
    const { id, secret } = await register();
    expect(secret).toMatch(/^whsec_/u);
    expect(JSON.stringify((await ask('/api/webhooks')).body)).not.toContain('whsec_');
    const key = await lab.giveKey({ kits: [asset_id] });
    const headers = { 'x-api-key': key };
    expect(await (await fetch(`${lab.url}/api/webhooks`, { headers })).json()).toEqual({ webhooks: [] });
    expect((await fetch(`${lab.url}/api/webhooks/${id}`, { headers })).status).toBe(404);
    expect((await ask(`/api/webhooks/${id}`, { method: 'DELETE' })).status).toBe(204);
    expect((await ask(`/api/webhooks/${id}`)).status).toBe(404);
  });

  it('do not exist where webhooks are off', async () => {
    const other = await startServiceLab(kit_id);
    try {
      const response = await fetch(`${other.url}/api/webhooks`, { headers: { 'x-api-key': other.key } });
      expect(response.status).toBe(404);
    } finally {
      await other.stop();
    }
  });
});
