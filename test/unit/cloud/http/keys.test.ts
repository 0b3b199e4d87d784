/** API keys over HTTP: what a key gives away is part of what it has, and it sees no key that has more. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  createdKey,
  type KeyResource,
  keyList,
  rotated_valid_ms,
} from '../../../../src/cloud/api/key-resources.ts';
import { type KeyRights } from '../../../../src/cloud/principal.ts';
import { scopes } from '../../../../src/cloud/scopes.ts';
import { texts } from '../../../../src/cloud/texts.ts';
import { kit_id } from '../../../support/contract-samples.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

const other_kit = '11111111-1111-4111-8111-111111111111';
const day_ms = 86_400_000;

let lab: ServiceLab;
beforeEach(async () => {
  lab = await startServiceLab(kit_id);
});
afterEach(async () => {
  vi.useRealTimers();
  await lab.stop();
});

interface Asked {
  readonly key?: string;
  readonly method?: string;
  readonly body?: object;
}
async function ask(path: string, { key = lab.key, method = 'GET', body }: Asked = {}) {
  const headers = { 'x-api-key': key, 'content-type': 'application/json' };
  return fetch(`${lab.url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
}
const list = async (key = lab.key) => keyList.parse(await (await ask('/api/keys', { key })).json()).keys;
const create = async (body: object, key = lab.key) => ask('/api/keys', { method: 'POST', key, body });
const idOf = (key: string): string => key.split('_')[1] ?? '';
const seen = (keys: readonly KeyResource[]) => keys.map(({ label }) => label);

describe('a key with the scope keys', () => {
  it('makes a key that works at once, whose secret is shown once', async () => {
    const answer = await create({ label: 'wall', scopes: ['read'] });
    expect(answer.status).toBe(201);
    const { key, ...made } = createdKey.parse(await answer.json());
    expect(made).toMatchObject({ label: 'wall', scopes: ['read'], kits: [kit_id], is_own: false });
    expect(answer.headers.get('location')).toBe(`/api/keys/${made.id}`);
    expect((await ask('/api/kits', { key })).status).toBe(200);
    expect(await list()).toContainEqual(made);
    expect(await (await ask('/api/keys')).text()).not.toContain(key.slice(`kc_${idOf(key)}_`.length));
    const line = lab.log.lines.find(({ sentence }) => sentence === texts.log_key_created);
    expect(line?.facts).toMatchObject({ key_id: made.id, by_key_id: idOf(lab.key) });
  });

  it('rotates a key: the new secret works, and the old one for a day, and no older one', async () => {
    const client = await lab.giveKey({ label: 'client', scopes: ['read'] });
    const rotate = async () => ask(`/api/keys/${idOf(client)}/rotate`, { method: 'POST' });
    const { key, ...after } = createdKey.parse(await (await rotate()).json());
    expect(after).toMatchObject({ id: idOf(client), label: 'client', scopes: ['read'] });
    expect(Date.parse(after.old_secret_expires_at ?? '')).toBeGreaterThan(Date.now());
    const statuses = async (...keys: readonly string[]) =>
      Promise.all(keys.map(async (each) => (await ask('/api/kits', { key: each })).status));
    expect(await statuses(client, key)).toEqual([200, 200]);
    const again = createdKey.parse(await (await rotate()).json());
    expect(await statuses(client, key, again.key)).toEqual([401, 200, 200]);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + rotated_valid_ms + 1_000 });
    expect(await statuses(key, again.key)).toEqual([401, 200]);
    expect((await list()).find(({ id }) => id === idOf(client))).not.toHaveProperty('old_secret_expires_at');
  });

  it('changes what a key may do while its secret stays with its clients (growthbook/growthbook#6303)', async () => {
    const admin = await lab.giveKey({ label: 'admin', kits: '*' });
    const client = await lab.giveKey({ label: 'client', scopes: ['read'] });
    const place = `/api/keys/${idOf(client)}`;
    const change = async (body: object) => ask(place, { method: 'PATCH', key: admin, body });
    const more = { kits: [kit_id, other_kit], scopes: ['read', 'alarms', 'read'] };
    const answer = await change(more);
    expect([answer.status, await answer.json()]).toEqual([
      200,
      expect.objectContaining({ label: 'client', kits: more.kits, scopes: ['read', 'alarms'] }),
    ]);
    const kits = (await (await ask('/api/kits', { key: client })).json()) as { id: string }[];
    expect(kits.map(({ id }) => id).sort()).toEqual([kit_id, other_kit].sort());
    const expires_at = new Date(Date.now() + day_ms).toISOString();
    await change({ label: 'tenant', kits: [other_kit], expires_at });
    expect(await (await ask(place, { key: admin })).json()).toMatchObject({
      label: 'tenant',
      kits: [other_kit],
      scopes: ['read', 'alarms'],
      expires_at,
    });
    expect((await ask(`/api/kits/${kit_id}`, { key: client })).status).toBe(404);
    expect(await (await change({ expires_at: null })).json()).not.toHaveProperty('expires_at');
    const lines = lab.log.lines.filter(({ sentence }) => sentence === texts.log_key_changed);
    expect(lines).toHaveLength(3);
  });

  it('changes of itself the name alone: it could not undo the rest', async () => {
    const own = `/api/keys/${idOf(lab.key)}`;
    const refused = await ask(own, { method: 'PATCH', body: { scopes: ['read'] } });
    expect([refused.status, await refused.json()]).toEqual([
      409,
      expect.objectContaining({ detail: texts.own_rights }),
    ]);
    const named = await ask(own, { method: 'PATCH', body: { label: 'ops room' } });
    expect(await named.json()).toMatchObject({ label: 'ops room', scopes: [...scopes] });
  });

  it('revokes a key at once, but not the one of the request', async () => {
    const client = await lab.giveKey({ label: 'client', scopes: ['read'] });
    expect((await ask(`/api/keys/${idOf(client)}`, { method: 'DELETE' })).status).toBe(204);
    expect((await ask('/api/kits', { key: client })).status).toBe(401);
    expect((await ask(`/api/keys/${idOf(client)}`, { method: 'DELETE' })).status).toBe(404);
    const own = await ask(`/api/keys/${idOf(lab.key)}`, { method: 'DELETE' });
    expect([own.status, await own.json()]).toEqual([409, expect.objectContaining({ detail: texts.own_key })]);
  });
});

describe('keys with other rights', () => {
  /** What the key of the request lacks. */
  const strangers: Readonly<Record<string, Partial<KeyRights>>> = {
    'of another tenant': { kits: [other_kit] },
    'of more kits': { kits: [kit_id, other_kit] },
    'of all kits': { kits: '*' },
  };

  it.each(Object.entries(strangers))('neither shows nor changes a key %s', async (_, rights) => {
    const stranger = await lab.giveKey({ label: 'stranger', ...rights });
    expect(seen(await list())).toEqual(['test']);
    for (const [method, path] of [
      ['GET', ''],
      ['POST', '/rotate'],
      ['PATCH', ''],
      ['DELETE', ''],
    ] as const) {
      const body = method === 'PATCH' && { body: { label: 'mine' } };
      expect((await ask(`/api/keys/${idOf(stranger)}${path}`, { method, ...body })).status).toBe(404);
    }
    expect((await ask('/api/kits', { key: stranger })).status).toBe(200);
  });

  it('neither shows nor changes a key of more scopes', async () => {
    const few = await lab.giveKey({ label: 'few', scopes: ['read', 'keys'] });
    expect(seen(await list(few))).toEqual(['few']);
    const path = `/api/keys/${idOf(lab.key)}`;
    expect((await ask(`${path}/rotate`, { method: 'POST', key: few })).status).toBe(404);
    expect((await ask(path, { method: 'DELETE', key: few })).status).toBe(404);
    expect(seen(await list())).toEqual(['test', 'few']);
  });

  const past = new Date(Date.now() - day_ms).toISOString();
  it.each([
    ['a scope that it lacks', { scopes: ['read', 'commands'] }, 403],
    ['a kit that it lacks', { scopes: ['read'], kits: [kit_id, other_kit] }, 422],
    ['all kits', { scopes: ['read'], kits: '*' }, 422],
    ['no scope', { scopes: [] }, 422],
    ['an unknown scope', { scopes: ['admin'] }, 422],
    ['no kit', { scopes: ['read'], kits: [] }, 422],
    ['an end in the past', { scopes: ['read'], expires_at: past }, 422],
    ['an end that is no time', { scopes: ['read'], expires_at: 'tomorrow' }, 422],
  ])('refuses to make a key, or of another one a key, with %s', async (_, body, status) => {
    const few = await lab.giveKey({ label: 'few', scopes: ['read', 'keys'] });
    expect((await create({ label: 'new', ...body }, few)).status).toBe(status);
    const given = await lab.giveKey({ label: 'given', scopes: ['read'] });
    const path = `/api/keys/${idOf(given)}`;
    expect((await ask(path, { method: 'PATCH', key: few, body })).status).toBe(status);
    expect((await list(few)).map(({ label, scopes: held }) => [label, held])).toEqual([
      ['few', ['read', 'keys']],
      ['given', ['read']],
    ]);
  });

  it('makes no key that outlives the one of the request', async () => {
    const expires_ms = Date.now() + day_ms;
    const brief = await lab.giveKey({ label: 'brief', expires_ms });
    const end = new Date(expires_ms).toISOString();
    expect(
      createdKey.parse(await (await create({ label: 'a', scopes: ['read'] }, brief)).json()),
    ).toMatchObject({
      expires_at: end,
    });
    const later = { label: 'b', scopes: ['read'], expires_at: new Date(expires_ms + 1_000).toISOString() };
    expect((await create(later, brief)).status).toBe(422);
  });

  it('rotates no key that has expired', async () => {
    const over = await lab.giveKey({ label: 'over', scopes: ['read'], expires_ms: Date.now() - 1 });
    const { status } = await ask(`/api/keys/${idOf(over)}/rotate`, { method: 'POST' });
    expect(status).toBe(409);
  });

  it('needs the scope keys for all of it', async () => {
    const key = await lab.giveKey({ scopes: scopes.filter((scope) => scope !== 'keys') });
    expect((await ask('/api/keys', { key })).status).toBe(403);
    expect((await create({ label: 'new', scopes: ['read'] }, key)).status).toBe(403);
    expect((await ask(`/api/keys/${idOf(key)}/rotate`, { method: 'POST', key })).status).toBe(403);
    expect((await ask(`/api/keys/${idOf(key)}`, { method: 'DELETE', key })).status).toBe(403);
  });
});
