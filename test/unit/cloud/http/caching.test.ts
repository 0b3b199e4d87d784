/** What saves bytes: ETags, compression of responses and of WebSocket frames, and pages of tasks. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { channels } from '../../../../src/contract/topics.ts';
import { kit_id, samples } from '../../../support/contract-samples.ts';
import { onEachDatabase } from '../each-database.ts';
import { sqlStore, type Store } from '../../../../src/cloud/store/sql-store.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

const app = 'https://app.example.com';
let lab: ServiceLab;
beforeEach(async () => {
  lab = await startServiceLab(kit_id, { cors_origins: [app] });
  await lab.publish(channels.state, samples['kitState'] ?? {});
  await lab.publish(channels.telemetry, samples['kitTelemetry'] ?? {});
});
afterEach(async () => lab.stop());

const kit = `/api/kits/${kit_id}`;
const ask = async (path: string, headers: Record<string, string> = {}) =>
  fetch(lab.url + path, { headers: { 'x-api-key': lab.key, ...headers } });

/** Without the decoding that fetch does. */
async function askRaw(path: string, headers: Record<string, string>) {
  const asked = request(lab.url + path, { headers: { 'x-api-key': lab.key, ...headers } });
  asked.end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(Buffer.from(chunk as Uint8Array));
  return { headers: response.headers, body: Buffer.concat(chunks) };
}

async function addTasks(store: Pick<Store, 'addTask'>, count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    await store.addTask({
      kit_id,
      task_id: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
      asset_id: kit_id,
      command_name: 'arm',
      payload: {},
      requested_by: kit_id,
      requested_by_name: 'test',
      // Three tasks in the same millisecond each time.
      created_ms: 1_000 + Math.floor(n / 3),
      due_ms: 60_000,
    });
  }
}

describe('ETag', () => {
  it('lets a client ask whether a response is still the same', async () => {
    const first = await ask(`${kit}/telemetry`);
    const tag = first.headers.get('etag') ?? '';
    expect(tag).toMatch(/^W\/"/u);
    expect(first.headers.get('cache-control')).toBe('private, no-cache');
    const again = await ask(`${kit}/telemetry`, { 'if-none-match': tag, origin: app });
    expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', tag]);
    expect(again.headers.get('access-control-allow-origin')).toBe(app);
    await lab.publish(channels.telemetry, { battery: 5 });
    expect((await ask(`${kit}/telemetry`, { 'if-none-match': tag })).status).toBe(200);
  });

  it('is not made for an export, which leaves while it is read', async () => {
    const response = await ask(`${kit}/export?from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z`);
    await response.body?.cancel();
    expect([response.status, response.headers.get('etag')]).toEqual([200, null]);
  });

  it('is never on a refusal, and needs the key', async () => {
    const tag = (await ask(`${kit}/telemetry`)).headers.get('etag') ?? '';
    const refused = await ask(`${kit}/telemetry`, { 'x-api-key': 'wrong', 'if-none-match': tag });
    expect([refused.status, refused.headers.get('etag'), refused.headers.get('cache-control')]).toEqual([
      401,
      null,
      'no-store',
    ]);
  });
});

describe('Compression', () => {
  it('sends gzip to a client that accepts it, with the same ETag, and plain JSON to others', async () => {
    const packed = await askRaw(`${kit}/telemetry`, { 'accept-encoding': 'gzip' });
    const plain = await askRaw(`${kit}/telemetry`, {});
    expect(packed.headers['content-encoding']).toBe('gzip');
    expect(packed.headers.vary).toMatch(/accept-encoding/iu);
    expect(plain.headers['content-encoding']).toBeUndefined();
    expect(gunzipSync(packed.body)).toEqual(plain.body);
    expect(packed.headers.etag).toBe(plain.headers.etag);
    const document = await askRaw('/openapi.json', { 'accept-encoding': 'gzip' });
    expect(gunzipSync(document.body).length).toBeGreaterThan(5 * document.body.length);
  });

  it('compresses the frames of a WebSocket whose client offers it, and of no other', async () => {
    const connect = async (perMessageDeflate: boolean) => {
      const socket = new WebSocket(`${lab.url.replace('http', 'ws')}/api/ws`, {
        perMessageDeflate,
        headers: { 'x-api-key': lab.key },
      });
      await once(socket, 'open');
      const frame = once(socket, 'message');
      socket.send(JSON.stringify({ type: 'subscribe', summaries: true }));
      const [raw] = (await frame) as [Buffer];
      const { extensions } = socket;
      socket.terminate();
      return { extensions, type: (JSON.parse(raw.toString('utf8')) as { type: string }).type };
    };
    expect(await connect(true)).toEqual({
      extensions: expect.stringContaining('permessage-deflate') as string,
      type: 'summaries',
    });
    expect(await connect(false)).toEqual({ extensions: '', type: 'summaries' });
  });
});

describe('Pages of tasks', () => {
  interface Page {
    readonly tasks: readonly { readonly id: string }[];
    readonly next_cursor?: string;
  }
  const page = async (query: string): Promise<Page> =>
    (await (await ask(`${kit}/tasks?${query}`)).json()) as Page;

  it('lead through all tasks, each once, though others are created meanwhile', async () => {
    await addTasks(lab.store, 20);
    const seen: string[] = [];
    let at = await page('limit=7');
    for (;;) {
      seen.push(...at.tasks.map(({ id }) => id));
      if (at.next_cursor === undefined) break;
      await lab.store.addTask({
        kit_id,
        task_id: crypto.randomUUID(),
        asset_id: kit_id,
        command_name: 'arm',
        payload: {},
        requested_by: kit_id,
        requested_by_name: 'test',
        created_ms: 9_000,
        due_ms: 60_000,
      });
      at = await page(`limit=7&cursor=${at.next_cursor}`);
    }
    expect([seen.length, new Set(seen).size]).toEqual([20, 20]);
  });

  it.each(['cursor=nonsense', 'offset=20', 'before=2026-11-21'])('refuse %s', async (query) => {
    const response = await ask(`${kit}/tasks?${query}`);
    expect(response.status).toBe(400);
  });
});

onEachDatabase('A page of stored tasks', (open) => {
  it('begins after the given one', async () => {
    const store = sqlStore(await open());
    await addTasks(store, 9);
    const all = await store.tasks(kit_id, { limit: 9 });
    for (const [index, after] of all.entries()) {
      expect(await store.tasks(kit_id, { limit: 9, after })).toEqual(all.slice(index + 1));
    }
  });
});
