/** Files of kits at the cloud: permits, uploads, contents, orders, room and erasure. */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readdir, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { serverFrame, type ServerFrame } from '../../../../src/cloud/api/frames.ts';
import { hashOf } from '../../../../src/cloud/hash.ts';
import { texts } from '../../../../src/cloud/texts.ts';
import type { FileAnswer } from '../../../../src/contract/files.ts';
import type { JsonObject } from '../../../../src/contract/json.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { day_ms } from '../../../../src/platform/time.ts';
import { eventually } from '../../../support/eventually.ts';
import { asset_id, kit_id, samples } from '../../../support/contract-samples.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';
import { makeDirectory } from '../../../support/temporary.ts';

const file_id = '4c7e2a90-6b1d-4f3a-8e52-9d0c1b2a3f48';
const other_id = '5c7e2a90-6b1d-4f3a-8e52-9d0c1b2a3f48';
const content = randomBytes(100_000);
const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function lab({ bytes_max = 1e6 } = {}) {
  const dir = await makeDirectory();
  ends.push(async () => rm(dir, { recursive: true }));
  const sent: { readonly file_id: string; readonly answer: FileAnswer }[] = [];
  const service: ServiceLab = await startServiceLab(kit_id, {
    hasHistory: true,
    files: {
      settings: { dir, url: 'https://kits.example.com', bytes_max, days: { default: 90, still: 1 } },
      send: async (_kit_id, id, answer) => void sent.push({ file_id: id, answer }),
    },
  });
  ends.push(service.stop);
  const reportOf = (more: JsonObject = {}): JsonObject => ({
    ...samples['fileReport'],
    id: file_id,
    bytes: content.length,
    sha256: createHash('sha256').update(content).digest('hex'),
    ...more,
  });
  const report = async ({
    id = file_id,
    ...more
  }: JsonObject & { readonly id?: string } = {}): Promise<void> =>
    service.publish(channels.file(id), reportOf({ id, ...more }));
  const answerTo = async (id: string, count: number): Promise<FileAnswer> => {
    const those = (): FileAnswer[] => sent.filter((each) => each.file_id === id).map(({ answer }) => answer);
    await eventually(`answer ${count} to ${id}`, () => those().length >= count);
    const answer = those()[count - 1];
    if (!answer) throw new Error('no answer');
    return answer;
  };
  /** Asks as the kit does. Returns the path and the token of the permit. */
  const permit = async (id = file_id, count = 1) => {
    await report({ id, state: 'requesting' });
    const answer = await answerTo(id, count);
    if (answer.want !== 'upload') throw new Error(`no permit: ${answer.want}`);
    return { path: new URL(answer.url).pathname, token: answer.token };
  };
  const upload = async (
    { path, token }: { path: string; token: string },
    method: string,
    offset?: number,
    body?: Uint8Array<ArrayBuffer>,
  ): Promise<Response> =>
    fetch(service.url + path, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        'tus-resumable': '1.0.0',
        ...(offset !== undefined && {
          'upload-offset': String(offset),
          'content-type': 'application/offset+octet-stream',
        }),
      },
      ...(body && { body }),
    });
  const api = async (
    path: string,
    { headers, ...init }: { readonly method?: string; readonly headers?: Record<string, string> } = {},
    key = service.key,
  ): Promise<Response> =>
    fetch(`${service.url}/api/kits/${kit_id}/files${path}`, {
      ...init,
      headers: { 'x-api-key': key, ...headers },
    });
  const bring = async (id = file_id): Promise<void> => {
    await upload(await permit(id), 'PATCH', 0, content);
    await answerTo(id, 2);
  };
  const erase = async (): Promise<void> => {
    const erased = await fetch(`${service.url}/api/kits/${kit_id}/history?before=2026-11-22T00:00:00Z`, {
      method: 'DELETE',
      headers: { 'x-api-key': service.key },
    });
    expect(erased.status).toBe(204);
  };
  /** Follows the kit on a socket. Returns what was shown of files: their states, and whether they are ordered. */
  const follow = async (): Promise<() => readonly (readonly unknown[])[]> => {
    const socket = new WebSocket(`${service.url.replace('http', 'ws')}/api/kits/${kit_id}/ws`, {
      headers: { 'x-api-key': service.key },
    });
    ends.push(async () => socket.terminate());
    const frames: ServerFrame[] = [];
    socket.on('message', (raw: Buffer) => frames.push(serverFrame.parse(JSON.parse(raw.toString('utf8')))));
    await once(socket, 'open');
    socket.send(JSON.stringify({ type: 'subscribe', assets: [asset_id] }));
    await eventually('the snapshot', () => frames.length > 0);
    return () =>
      frames.flatMap((frame) => (frame.type === 'file' ? [[frame.file.state, frame.file.ordered]] : []));
  };
  return { service, dir, sent, report, answerTo, permit, upload, api, bring, erase, follow };
}

describe('A file of a kit at the cloud', () => {
  it('is listed when it is announced, by kind, asset, state and time, in pages', async () => {
    const { report, api } = await lab();
    await report();
    await report({ id: other_id, kind: 'flight_log', asset_id: null, at: '2026-11-22T10:00:00.000Z' });
    const of = async (query: string): Promise<string[]> => {
      const { files } = (await (await api(query)).json()) as { files: { id: string }[] };
      return files.map(({ id }) => id);
    };
    expect(await of('')).toEqual([other_id, file_id]);
    expect(await of('?kinds=flight_log')).toEqual([other_id]);
    expect(await of(`?assets=${asset_id}`)).toEqual([file_id]);
    expect(await of('?states=stored')).toEqual([]);
    expect(await of('?to=2026-11-22T00:00:00Z')).toEqual([file_id]);
    const page = (await (await api('?limit=1')).json()) as { next: string };
    expect(await of(`?limit=1&cursor=${page.next}`)).toEqual([file_id]);
    expect(await (await api(`/${file_id}`)).json()).toMatchObject({
      id: file_id,
      kind: 'alarm_still',
      state: 'at_kit',
      ordered: false,
      received_bytes: 0,
      alarms: [{ feed: 'motion' }],
    });
    expect((await api(`/${file_id}/content`)).status).toBe(409);
  });

  // As after a restore of the database alone, or with a disk that is not mounted (immich-app/immich#2344, immich-app/immich#11115).
  it.each(['identity', 'gzip'])(
    'that the folder lacks, or has not whole, is never served as whole, as %s',
    { tags: 'long' },
    async (encoding) => {
      const { upload, answerTo, api, report, dir } = await lab({ bytes_max: 2e7 });
      const large = randomBytes(8_000_000);
      const sha256 = createHash('sha256').update(large).digest('hex');
      await report({ bytes: large.length, sha256, content_type: 'text/plain', state: 'requesting' });
      const answer = await answerTo(file_id, 1);
      if (answer.want !== 'upload') throw new Error(answer.want);
      await upload({ path: new URL(answer.url).pathname, token: answer.token }, 'PATCH', 0, large);
      await answerTo(file_id, 2);
      const path = join(dir, kit_id, file_id);
      const headers = { 'accept-encoding': encoding };
      const reading = await api(`/${file_id}/content`, { headers });
      await truncate(path, 4_000_000);
      await expect(reading.arrayBuffer()).rejects.toThrow(/terminated/u);
      const asked = async () => {
        const response = await api(`/${file_id}/content`, { headers });
        return [response.status, ((await response.json()) as { detail: string }).detail];
      };
      expect(await asked()).toEqual([503, texts.file_lost]);
      await rm(path);
      expect(await asked()).toEqual([503, texts.file_lost]);
    },
  );

  it('comes in parts, and is served by ranges with its own type as an attachment', async () => {
    const { permit, upload, answerTo, api, report } = await lab();
    await report();
    const to = await permit();
    expect((await upload(to, 'HEAD')).headers.get('upload-offset')).toBe('0');
    const first = await upload(to, 'PATCH', 0, content.subarray(0, 60_000));
    expect([first.status, first.headers.get('upload-offset')]).toEqual([204, '60000']);
    expect((await upload(to, 'HEAD')).headers.get('upload-offset')).toBe('60000');
    const stale = await upload(to, 'PATCH', 0, content.subarray(0, 10));
    expect([stale.status, stale.headers.get('upload-offset')]).toEqual([409, '60000']);
    expect((await upload(to, 'PATCH', 60_000, content.subarray(60_000))).status).toBe(204);
    expect(await answerTo(file_id, 2)).toMatchObject({ want: 'nothing' });
    const whole = await api(`/${file_id}/content`);
    expect(Buffer.from(await whole.arrayBuffer()).equals(content)).toBe(true);
    const { headers } = whole;
    expect(headers.get('content-type')).toBe('image/jpeg');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('content-disposition')).toMatch(/^attachment; /u);
    const tag = headers.get('etag') ?? '';
    const part = await api(`/${file_id}/content`, { headers: { range: 'bytes=10-19', 'if-range': tag } });
    expect([part.status, part.headers.get('content-range')]).toEqual([206, `bytes 10-19/${content.length}`]);
    expect(Buffer.from(await part.arrayBuffer()).equals(content.subarray(10, 20))).toBe(true);
    expect((await api(`/${file_id}/content`, { headers: { range: 'bytes=100000-' } })).status).toBe(416);
    expect((await api(`/${file_id}/content`, { headers: { 'if-none-match': tag } })).status).toBe(304);
  });

  it('is not taken with another hash: it begins again', async () => {
    const { permit, upload, service, answerTo } = await lab();
    const to = await permit();
    const wrong = Buffer.alloc(content.length);
    expect((await upload(to, 'PATCH', 0, wrong)).status).toBe(460);
    expect((await upload(to, 'HEAD')).headers.get('upload-offset')).toBe('0');
    expect((await service.store.file({ kit_id, file_id }))?.state).toBe('at_kit');
    expect((await upload(to, 'PATCH', 0, content)).status).toBe(204);
    expect(await answerTo(file_id, 2)).toMatchObject({ want: 'nothing' });
  });

  // A client takes an upload with all its bytes for done (tus-js-client#557), and asks for nothing more (tus-node-server#207).
  it.each([
    ['before it had checked the hash', '.part'],
    ['before it had entered it', ''],
  ])('is here though the service was killed %s', async (_, end) => {
    const { dir, permit, upload, answerTo, api } = await lab();
    const to = await permit();
    await mkdir(join(dir, kit_id));
    await writeFile(join(dir, kit_id, file_id + end), content);
    const found = await upload(to, 'HEAD');
    expect([found.status, found.headers.get('upload-offset')]).toEqual([200, String(content.length)]);
    expect(await answerTo(file_id, 2)).toMatchObject({ want: 'nothing' });
    const whole = await api(`/${file_id}/content`);
    expect(Buffer.from(await whole.arrayBuffer()).equals(content)).toBe(true);
  });

  it('begins again when what a killed service left has another hash', async () => {
    const { dir, permit, upload } = await lab();
    const to = await permit();
    await mkdir(join(dir, kit_id));
    await writeFile(join(dir, kit_id, `${file_id}.part`), content.toReversed());
    expect((await upload(to, 'HEAD')).status).toBe(460);
    expect((await upload(to, 'HEAD')).headers.get('upload-offset')).toBe('0');
  });

  it('is shown on the sockets when it is announced, ordered, here and deleted', async () => {
    const { report, api, permit, upload, follow } = await lab();
    const states = await follow();
    const shown = async (count: number): Promise<void> =>
      eventually('it is shown', () => states().length === count);
    await report();
    await shown(1);
    await report({ id: other_id, asset_id: other_id });
    await api(`/${file_id}/request`, { method: 'POST' });
    await shown(2);
    await upload(await permit(file_id, 2), 'PATCH', 0, content);
    await shown(3);
    await api(`/${file_id}`, { method: 'DELETE' });
    await shown(4);
    expect(states()).toEqual([
      ['at_kit', false],
      ['at_kit', true],
      ['stored', true],
      ['dropped', true],
    ]);
  });

  it('needs its own permit, one that has not expired', async () => {
    const { permit, upload, service, bring } = await lab();
    const [mine, other] = [await permit(), await permit(other_id)];
    const statusOf = async (token: string): Promise<number> =>
      (await upload({ ...mine, token }, 'PATCH', 0, content.subarray(0, 1))).status;
    expect(await statusOf(other.token)).toBe(401);
    expect(await statusOf('')).toBe(401);
    await service.store.permitFile(
      { kit_id, file_id },
      { hash: hashOf('old'), until_ms: Date.now() - 1, now_ms: Date.now(), bytes: 1, bytes_max: 1e9 },
    );
    expect(await statusOf('old')).toBe(401);
    await bring('6c7e2a90-6b1d-4f3a-8e52-9d0c1b2a3f48');
    expect((await upload(mine, 'HEAD')).status).toBe(401);
  });

  it('takes no more than was announced', async () => {
    const { permit, upload } = await lab();
    const to = await permit();
    expect((await upload(to, 'PATCH', 0, Buffer.concat([content, content]))).status).toBe(413);
    expect((await upload(to, 'PATCH', 0, content)).status).toBe(204);
  });

  it('is asked for by an order, again when the kit connects, and not when it is here', async () => {
    const { report, api, answerTo, service, bring } = await lab();
    await report();
    const reader = await service.giveKey({ scopes: ['read'] });
    expect((await api(`/${file_id}/request`, { method: 'POST' }, reader)).status).toBe(403);
    const ordered = await api(`/${file_id}/request`, { method: 'POST' });
    expect([ordered.status, await ordered.json()]).toMatchObject([202, { ordered: true }]);
    expect(await answerTo(file_id, 1)).toEqual({ want: 'order' });
    await service.publish(channels.state, samples['kitState'] ?? {});
    expect(await answerTo(file_id, 2)).toEqual({ want: 'order' });
    await bring(other_id);
    expect((await api(`/${other_id}/request`, { method: 'POST' })).status).toBe(409);
  });

  it('is deleted here and at the kit, for good', async () => {
    const { bring, api, dir, answerTo, report } = await lab();
    await bring();
    expect((await api(`/${file_id}`, { method: 'DELETE' })).status).toBe(204);
    expect(await answerTo(file_id, 3)).toMatchObject({ want: 'deletion' });
    expect((await api(`/${file_id}`)).status).toBe(404);
    expect(await readdir(join(dir, kit_id))).toEqual([]);
    await report({ state: 'requesting' });
    expect(await answerTo(file_id, 4)).toMatchObject({ want: 'deletion' });
  });

  it('goes with an erasure of what was before, and never comes again', async () => {
    const { bring, api, erase, answerTo, report } = await lab();
    await bring();
    await erase();
    expect((await api(`/${file_id}/content`)).status).toBe(404);
    await report({ state: 'requesting' });
    expect(await answerTo(file_id, 3)).toMatchObject({ want: 'deletion' });
  });

  it('is not taken when it is announced first after an erasure of its time', async () => {
    const { api, erase, answerTo, report } = await lab();
    await report({ id: other_id, at: '2026-11-22T10:00:00.000Z' });
    await erase();
    await report();
    expect(await answerTo(file_id, 1)).toMatchObject({ want: 'deletion' });
    expect((await api(`/${file_id}`)).status).toBe(404);
    await report({ id: other_id, at: '2026-11-22T10:00:00.000Z', state: 'requesting' });
    expect(await answerTo(other_id, 1)).toMatchObject({ want: 'upload' });
  });

  it('is shown on the sockets when it is erased, and when it was kept for its days', async () => {
    const { bring, erase, follow, service, report, api } = await lab();
    await bring();
    const states = await follow();
    await service.store.fileProgress({ kit_id, file_id }, content.length, Date.now() - 91 * day_ms);
    await report({ id: other_id });
    await api(`/${other_id}`, { method: 'DELETE' });
    await eventually('they are shown', () => states().length === 3);
    await report({ id: '6c7e2a90-6b1d-4f3a-8e52-9d0c1b2a3f48' });
    await erase();
    await eventually('the third is shown', () => states().length === 5);
    expect(states().map(([state]) => state)).toEqual(['at_kit', 'dropped', 'dropped', 'at_kit', 'dropped']);
  });

  it('waits while the room is promised to another, and deletes nothing for it in vain', async () => {
    const { report, permit, answerTo, bring, api, upload } = await lab({ bytes_max: 250_000 });
    await bring();
    const to = await permit(other_id);
    const third = '6c7e2a90-6b1d-4f3a-8e52-9d0c1b2a3f48';
    await report({ id: third, bytes: 180_000, state: 'requesting' });
    expect(await answerTo(third, 1)).toMatchObject({ want: 'later', retry_s: 60 });
    expect((await api(`/${file_id}`)).status).toBe(200);
    await upload(to, 'PATCH', 0, content);
    await report({ id: third, bytes: 180_000, state: 'requesting' });
    expect(await answerTo(third, 2)).toMatchObject({ want: 'upload' });
    expect((await api(`/${other_id}`)).status).toBe(404);
  });

  it('is permitted once for the same room when two are asked for together', async () => {
    const { report, answerTo, sent } = await lab({ bytes_max: 150_000 });
    await Promise.all([report({ state: 'requesting' }), report({ id: other_id, state: 'requesting' })]);
    await answerTo(file_id, 1);
    await answerTo(other_id, 1);
    expect(sent.map(({ answer }) => answer.want).toSorted()).toEqual(['later', 'upload']);
  });

  it('leaves nothing in the folder when it is given up or deleted before it was whole', async () => {
    const { report, permit, upload, api, dir, service } = await lab();
    await upload(await permit(), 'PATCH', 0, content.subarray(0, 10));
    await upload(await permit(other_id), 'PATCH', 0, content.subarray(0, 10));
    await report({ state: 'dropped', reason: 'too old' });
    await api(`/${other_id}`, { method: 'DELETE' });
    await eventually('the folder is empty', async () => (await readdir(join(dir, kit_id))).length === 0);
    await eventually(
      'nothing is counted',
      async () => (await service.store.file({ kit_id, file_id }))?.received === 0,
    );
  });

  it('makes room by the oldest contents, and waits where it is larger than all may be', async () => {
    const { bring, permit, api, answerTo, report } = await lab({ bytes_max: 150_000 });
    await bring();
    await permit(other_id);
    expect((await api(`/${file_id}`)).status).toBe(404);
    const large = '6c7e2a90-6b1d-4f3a-8e52-9d0c1b2a3f48';
    await report({ id: large, bytes: 200_000, state: 'requesting' });
    expect(await answerTo(large, 1)).toMatchObject({ want: 'later', retry_s: 3_600 });
  });

  it('is not sent twice: a kit that asks again learns that it is here', async () => {
    const { bring, report, answerTo } = await lab();
    await bring();
    await report({ state: 'requesting' });
    expect(await answerTo(file_id, 3)).toMatchObject({ want: 'nothing' });
  });

  it('keeps what came before a cut', async () => {
    const { permit, upload, dir } = await lab();
    const to = await permit();
    let pull: () => void = () => undefined;
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(content.subarray(0, 70_000));
        pull = () => controller.error(new Error('cut'));
      },
    });
    const hanging = fetch(new URL(to.path, (await upload(to, 'HEAD')).url), {
      method: 'PATCH',
      headers: {
        authorization: `Bearer ${to.token}`,
        'upload-offset': '0',
        'content-type': 'application/offset+octet-stream',
      },
      body,
      duplex: 'half',
    } as RequestInit).catch(() => undefined);
    await eventually('it has come', async () => {
      const found = await stat(join(dir, kit_id, `${file_id}.part`)).catch(() => undefined);
      return found?.size === 70_000;
    });
    pull();
    await hanging;
    expect((await upload(to, 'HEAD')).headers.get('upload-offset')).toBe('70000');
    expect((await upload(to, 'PATCH', 70_000, content.subarray(70_000))).status).toBe(204);
  });
});
