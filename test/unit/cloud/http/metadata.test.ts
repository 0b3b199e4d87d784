/** Metadata of partner assets, read with the asset and replaced; names and tags of kits. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { channels } from '../../../../src/contract/topics.ts';
import { asset_id, kit_id, samples, task_id } from '../../../support/contract-samples.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

let lab: ServiceLab;
beforeEach(async () => {
  lab = await startServiceLab(kit_id);
  await lab.publish(channels.state, samples['kitState'] ?? {});
  await lab.publish(channels.asset(asset_id), samples['announcement'] ?? {});
});
afterEach(async () => lab.stop());

const assets = `/api/kits/${kit_id}/assets`;

async function ask(method: string, path: string, body?: unknown, key = lab.key) {
  const response = await fetch(lab.url + path, {
    method,
    headers: { 'x-api-key': key, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const answer: unknown = text === '' ? undefined : JSON.parse(text);
  return { status: response.status, body: answer as { readonly id: string } };
}

async function register(): Promise<string> {
  const body = { name: 'Truck', type: 'vehicle', vendor: 'ACME', metadata: { crew: 'north', seats: 4 } };
  return (await ask('POST', assets, body)).body.id;
}

async function partner(id: string) {
  return (await lab.store.partners(kit_id)).find((each) => each.asset_id === id);
}

describe('PATCH of an asset', () => {
  it('replaces the metadata as a whole, and raises the revision for the other side', async () => {
    const id = await register();
    await ask('POST', `${assets}/${id}/location`, { lat: 1, lon: 2 });
    const { status, body } = await ask('PATCH', `${assets}/${id}`, { metadata: { crew: 'south' } });
    const changed = { id, name: 'Truck', vendor: 'ACME', lat: 1, lon: 2, metadata: { crew: 'south' } };
    expect([status, body]).toMatchObject([200, changed]);
    expect((await ask('GET', `${assets}/${id}`)).body).toEqual(body);
    const record = { revision: 2, metadata: { crew: 'south' }, created_by: expect.any(String) as string };
    expect(await partner(id)).toMatchObject({ revision: 2, gone: false, record });
  });

  it('gives each of many changes at once a separate revision', async () => {
    const id = await register();
    const patches = Array.from({ length: 8 }, async (_, n) =>
      ask('PATCH', `${assets}/${id}`, { metadata: { n } }),
    );
    expect((await Promise.all(patches)).map(({ status }) => status)).toEqual(patches.map(() => 200));
    expect(await partner(id)).toMatchObject({ revision: 9 });
  });

  it('is sent to the subscribers', async () => {
    const id = await register();
    const seen: unknown[] = [];
    const end = new AbortController();
    lab.changes.subscribe(kit_id, (changes) => seen.push(...changes), end.signal);
    await ask('PATCH', `${assets}/${id}`, { metadata: {} });
    end.abort();
    expect(seen).toEqual([{ kind: 'asset', kit_id, asset_id: id }]);
  });

  it('is 409 for an asset of the kit, and 404 for an unknown one', async () => {
    expect((await ask('PATCH', `${assets}/${asset_id}`, { metadata: {} })).status).toBe(409);
    expect((await ask('PATCH', `${assets}/${task_id}`, { metadata: {} })).status).toBe(404);
  });

  it.each([
    ['#/metadata', { metadata: { text: 'x'.repeat(16_384) } }],
    ['#/metadata', { metadata: ['crew'] }],
    ['#/metadata', { metadata: null }],
    ['#/name', { name: ' ' }],
    ['#', {}],
    ['#', { metadata: {}, vendor: 'x' }],
  ])('is 422 at %s for what does not fit, and changes nothing', async (pointer, change) => {
    const id = await register();
    const { status, body } = await ask('PATCH', `${assets}/${id}`, change);
    expect([status, body]).toMatchObject([422, { errors: [{ pointer }] }]);
    expect(await partner(id)).toMatchObject({ revision: 1, record: { metadata: { crew: 'north' } } });
  });

  it.each([
    ['a number that is too large', '{"crew":{"n":1e400}}'],
    ['a number that is too large', '{"list":[0,-1e999]}'],
    ['half a surrogate pair', '{"crew":"\\ud800"}'],
    ['half a surrogate pair', '{"\\udc00":{"a":1}}'],
  ])('is 422 for %s, which could not be kept as it is: %s', async (reason, metadata) => {
    const id = await register();
    const { status, body } = await ask('PATCH', `${assets}/${id}`, `{"metadata":${metadata}}`);
    expect([status, body]).toMatchObject([
      422,
      { errors: [{ pointer: '#/metadata', detail: expect.stringContaining(reason) as string }] },
    ]);
    expect(await partner(id)).toMatchObject({ revision: 1 });
  });

  it('keeps the last value of a name that stands twice, at every depth', async () => {
    const id = await register();
    const twice = '{"metadata":{"a":1,"b":{"c":1,"c":[2]},"a":"last","\\u0061":"very last"}}';
    const last = { a: 'very last', b: { c: [2] } };
    expect((await ask('PATCH', `${assets}/${id}`, twice)).body).toMatchObject({ metadata: last });
    expect((await ask('GET', `${assets}/${id}`)).body).toMatchObject({ metadata: last });
    expect(await partner(id)).toMatchObject({ record: { metadata: last } });
  });

  it('has the bounds of every body', async () => {
    const id = await register();
    const deep = `{"metadata":${'{"a":'.repeat(6_000)}1${'}'.repeat(6_000)}}`;
    expect((await ask('PATCH', `${assets}/${id}`, deep)).status).toBe(400);
    expect((await ask('PATCH', `${assets}/${id}`, ' '.repeat(70_000))).status).toBe(413);
    const headers = { 'x-api-key': lab.key, 'content-type': 'text/plain' };
    const form = await fetch(`${lab.url}${assets}/${id}`, { method: 'PATCH', headers, body: 'name=x' });
    expect(form.status).toBe(415);
  });
});

describe('PATCH of a kit', () => {
  const path = `/api/kits/${kit_id}`;

  it('names and tags it for every reader, whatever the kit calls itself, until its own name is wanted again', async () => {
    const own = ((await ask('GET', path)).body as unknown as { readonly name: string }).name;
    const seen: unknown[] = [];
    const end = new AbortController();
    lab.changes.subscribe(kit_id, (changes) => seen.push(...changes), end.signal);
    const tags = ['alps', 'rescue', 'alps'];
    const changed = await ask('PATCH', path, { name: 'North ridge', tags });
    expect([changed.status, changed.body]).toMatchObject([
      200,
      { id: kit_id, name: 'North ridge', tags: ['alps', 'rescue'] },
    ]);
    end.abort();
    expect(seen).toEqual([{ kind: 'kit', kit_id }]);
    await lab.publish(channels.state, { ...samples['kitState'], name: 'Renamed by itself' });
    expect((await ask('GET', '/api/kits')).body).toMatchObject([{ name: 'North ridge' }]);
    expect((await ask('GET', `${path}/telemetry`)).body).toMatchObject({ kit_name: 'North ridge' });
    expect((await ask('PATCH', path, { name: null })).body).toMatchObject({
      name: 'Renamed by itself',
      tags: ['alps', 'rescue'],
    });
    expect((await ask('PATCH', path, { tags: [] })).body).not.toHaveProperty('tags');
    expect(own).not.toBe('North ridge');
  });

  it.each([
    [422, {}],
    [422, { name: '' }],
    [422, { tags: [''] }],
    [422, { nmae: 'x' }],
  ])('is %i for %j', async (status, body) => {
    expect((await ask('PATCH', path, body)).status).toBe(status);
  });

  it('is 403 for a key that may only read, and 404 for a kit of others', async () => {
    const reader = await lab.giveKey({ scopes: ['read'] });
    expect((await ask('PATCH', path, { tags: ['x'] }, reader)).status).toBe(403);
    expect((await ask('PATCH', `/api/kits/${task_id}`, { tags: ['x'] })).status).toBe(404);
  });
});
