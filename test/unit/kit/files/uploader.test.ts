/** Uploads to the server of the protocol's authors, through a network that cuts, stalls and answers wrongly. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { appendFile, readFile } from 'node:fs/promises';
import {
  createServer,
  type IncomingMessage,
  type Server as HttpServer,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, connect as connectTo, createServer as createRelay, type Socket } from 'node:net';
import { join } from 'node:path';
import { FileStore as TusFiles } from '@tus/file-store';
import { Server as TusServer } from '@tus/server';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type FileAnswer, type FileReport, fileReport } from '../../../../src/contract/files.ts';
import { KitFiles } from '../../../../src/kit/files/kit-files.ts';
import { texts } from '../../../../src/kit/files/texts.ts';
import { Uploader, type UploadRule } from '../../../../src/kit/files/uploader.ts';
import { openTransport } from '../../../../src/mqtt/socket.ts';
import { descriptorOf, unsentBytes } from '../../../../src/platform/linux/unsent-bytes.ts';
import { sleep } from '../../../../src/platform/time.ts';
import { eventually } from '../../../support/eventually.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { testDirectory } from '../../../support/test-directory.ts';

const kit_id = '0f8c1a52-6d1e-4b7a-9c3d-1f2e3d4c5b6a';

type Handle = (request: IncomingMessage, response: ServerResponse) => unknown;

/** The cloud: makes an upload at the library's server for each request, and says `nothing` once it has all bytes. */
async function lab({ bytes_per_s = 0 } = {}) {
  const dir = await testDirectory();
  const tus = new TusServer({ path: '/uploads', datastore: new TusFiles({ directory: join(dir) }) });
  const fault: { handle: Handle | undefined } = { handle: undefined };
  const counts = { requests: 0, bytes: 0 };
  const server: HttpServer = createServer((request, response) => {
    if (request.method !== 'POST') counts.requests += 1;
    if (fault.handle?.(request, response) !== true) void tus.handle(request, response);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  // The network: it can be cut, and counts what leaves the kit.
  const sockets = new Set<Socket>();
  const network = { onBytes: (_bytes: number): void => undefined, tcp: undefined as Socket | undefined };
  const relay = createRelay((from) => {
    const to = connectTo(port, '127.0.0.1');
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      sockets.add(one);
      one
        .on('error', () => undefined)
        .once('close', () => {
          sockets.delete(one);
          other.destroy();
        });
    }
    from.on('data', (chunk: Buffer) => {
      counts.bytes += chunk.length;
      network.onBytes(chunk.length);
    });
    from.pipe(to);
    to.pipe(from);
  });
  await once(relay.listen(0, '127.0.0.1'), 'listening');
  const { port: relay_port } = relay.address() as AddressInfo;
  const base = `http://127.0.0.1:${port}/uploads`;
  const state = {
    rule: 'always' as UploadRule | undefined,
    busy: false,
    /** Of the interface by which the kernel reaches the cloud, where it is not that of the session. */
    rule_of_way: undefined as UploadRule | undefined,
    looks: 0,
    /** What the cloud answers in place of a permit. */
    answer: undefined as ((report: FileReport) => FileAnswer | undefined) | undefined,
  };
  const reports: FileReport[] = [];
  const stopping = new AbortController();
  const log = recordingLog();
  const files = new KitFiles({
    kit_id,
    dir: join(dir, 'kit'),
    limits: () => ({ bytes_max: 1e8, age_max_ms: 1e9, free_bytes_min: 0 }),
    outbox: {
      append({ data }) {
        const report = fileReport.parse(data);
        reports.push(report);
        if (report.state === 'requesting') void answerTo(report);
        return { epoch: 1, seq: reports.length };
      },
      committed: async () => undefined,
    },
    now: Date.now,
    log,
    signal: stopping.signal,
  });
  const uploader = new Uploader({
    files,
    rule: (way) => (way === null ? state.rule : state.rule_of_way),
    async wayTo() {
      state.looks += 1;
      return state.rule_of_way ? 'wwan0' : null;
    },
    isBusy: () => state.busy,
    bytesPerS: () => bytes_per_s,
    retry: { first_ms: 5, max_ms: 50 },
    look_ms: 10,
    async connect({ hostname }, signal) {
      const url = `mqtt://${hostname}:${relay_port}`;
      const nothing = { ca: undefined, cert: undefined, key: undefined, proxy: null };
      const transport = await openTransport({ url, ...nothing }, signal);
      network.tcp = transport.tcp;
      return transport;
    },
    log,
    signal: stopping.signal,
  });
  const uploads = new Map<string, string>();
  const create = async ({ id, bytes }: FileReport): Promise<string> => {
    const known = uploads.get(id);
    if (known !== undefined) return known;
    const made = await fetch(base, {
      method: 'POST',
      headers: { 'tus-resumable': '1.0.0', 'upload-length': String(bytes) },
    });
    const url = made.headers.get('location') ?? '';
    uploads.set(id, url);
    return url;
  };
  const answerTo = async (report: FileReport): Promise<void> => {
    const given = state.answer?.(report);
    const url = given ? '' : await create(report);
    const expires_at = new Date(Date.now() + 60_000).toISOString();
    await uploader.answer(report.id, given ?? { want: 'upload', url, token: 'permit', expires_at });
  };
  tus.on('POST_FINISH', (_request: unknown, _response: unknown, { id }: { id: string }) => {
    const [file_id = ''] = [...uploads].find(([, url]) => url.endsWith(id)) ?? [];
    const sha256 = files.store.get(file_id)?.sha256 ?? '';
    void uploader.answer(file_id, { want: 'nothing', sha256 });
  });
  await files.open();
  const running = uploader.run();
  onTestFinished(async () => {
    stopping.abort();
    await running;
    server.close();
    relay.close();
    for (const socket of sockets) socket.destroy();
    server.closeAllConnections();
    await files.store.close();
  });
  return {
    files,
    uploader,
    state,
    fault,
    counts,
    network,
    reports,
    log,
    isIdle: () => sockets.size === 0,
    isSent: async () => eventually('all files are sent', () => files.store.files.length === 0),
    /** What has arrived at the network is not read on. */
    stall: () => {
      for (const socket of sockets) socket.pause();
    },
    cut: () => {
      for (const socket of sockets) socket.destroy();
    },
    /** The content as the server has it. */
    received: async (id: string) => readFile(join(dir, (uploads.get(id) ?? '').split('/').at(-1) ?? '')),
    forget: (id: string) => uploads.delete(id),
  };
}

const about = { kind: 'flight_log', asset_key: null, name: 'log.bin', at_ms: 0 } as const;

describe('An upload', () => {
  it('brings files of any size to the server byte for byte, once each, and deletes them here', async () => {
    const { files, received, reports, isSent } = await lab();
    const contents = [1, 16_384, 300_000, 1_000_000].map((size) => randomBytes(size));
    const ids: string[] = [];
    for (const bytes of contents) ids.push(await files.add({ ...about, content: { bytes } }));
    await isSent();
    for (const [at, id] of ids.entries())
      expect((await received(id)).equals(contents[at] ?? Buffer.alloc(0))).toBe(true);
    expect(files.view()).toMatchObject({ accepted: 4, uploaded: 4, dropped: {}, kept: { files: 0 } });
    await eventually(
      'each is reported',
      () => reports.filter(({ state }) => state === 'uploaded').length === 4,
    );
  });

  it('goes on where a cut has left it, however often', { tags: 'long' }, async () => {
    const { files, network, counts, cut, received, isSent } = await lab();
    const bytes = randomBytes(1_400_000);
    let cuts = 0;
    let since = 0;
    network.onBytes = (count) => {
      since += count;
      if (since < 150_000 || cuts === 8) return;
      since = 0;
      cuts += 1;
      cut();
    };
    const id = await files.add({ ...about, content: { bytes } });
    await isSent();
    expect(cuts).toBe(8);
    expect((await received(id)).equals(bytes)).toBe(true);
    // What a cut leaves unacknowledged is sent again, and nothing else.
    expect(counts.bytes).toBeLessThan(bytes.length + 8 * 300_000);
  });

  it('finds the limit of a proxy once, and does not grow beyond it again (mieweb/opensource-server#395)', async () => {
    const { files, fault, received, isSent } = await lab();
    let refused = 0;
    fault.handle = (request, response) => {
      if (Number(request.headers['content-length'] ?? 0) <= 100_000) return false;
      refused += 1;
      response.writeHead(413).end('Request Entity Too Large');
      return true;
    };
    const bytes = randomBytes(1_000_000);
    const id = await files.add({ ...about, content: { bytes } });
    await isSent();
    expect((await received(id)).equals(bytes)).toBe(true);
    expect(refused).toBeLessThan(4);
  });

  it.each<[string, Handle]>([
    [
      'a proxy that takes 100 kB at most (413)',
      (request, response) => {
        if (Number(request.headers['content-length'] ?? 0) <= 100_000) return false;
        response.writeHead(413).end('Request Entity Too Large');
        return true;
      },
    ],
    ['the upload is held by a request that broke (423)', firstPatch(423)],
    ['another offset than it was told (409)', firstPatch(409)],
    ['a server that fails (503)', firstPatch(503)],
    [
      'a proxy that answers HEAD from its cache',
      (() => {
        let isFirst = true;
        return (request, response) => {
          if (request.method !== 'HEAD' || !isFirst) return false;
          isFirst = false;
          response.writeHead(200, { 'content-type': 'text/html' }).end();
          return true;
        };
      })(),
    ],
  ])('ends well in spite of %s', async (_, handle) => {
    const { files, fault, received, uploader, isSent } = await lab();
    fault.handle = handle;
    const bytes = randomBytes(400_000);
    const id = await files.add({ ...about, content: { bytes } });
    await isSent();
    expect((await received(id)).equals(bytes)).toBe(true);
    // The cloud's word may come before the answer to the request.
    await eventually('the fault is over', () => uploader.view.fault === null);
  });

  it.each([401, 404, 410])(
    'asks for another permit where the old one is not taken any more (%i)',
    async (status) => {
      const { files, fault, reports, received, isSent } = await lab();
      fault.handle = firstPatch(status);
      const bytes = randomBytes(1_000);
      const id = await files.add({ ...about, content: { bytes } });
      await isSent();
      expect(reports.filter(({ state }) => state === 'requesting')).toHaveLength(2);
      expect((await received(id)).equals(bytes)).toBe(true);
    },
  );

  it('sends nothing on a link that forbids it, and only what was ordered where that is the rule', async () => {
    const { files, state, counts, uploader, isSent } = await lab();
    state.rule = 'never';
    const first = await files.add({ ...about, name: 'first', content: { bytes: randomBytes(10) } });
    await files.add({ ...about, name: 'second', content: { bytes: randomBytes(10) } });
    await uploader.answer(first, { want: 'order' });
    await new Promise((resolve) => setImmediate(resolve));
    expect(counts).toEqual({ requests: 0, bytes: 0 });
    state.rule = 'on_order';
    await eventually('the first is sent', () => files.store.files.length === 1);
    expect(files.store.files[0]?.name).toBe('second');
    state.rule = 'always';
    await isSent();
  });

  it('stops in the middle when the link changes to one that forbids it, and goes on after that', async () => {
    const { files, state, counts, network, received, isIdle, isSent } = await lab({ bytes_per_s: 400_000 });
    const bytes = randomBytes(300_000);
    network.onBytes = () => {
      if (counts.bytes > 50_000) state.rule = 'never';
    };
    const id = await files.add({ ...about, content: { bytes } });
    await eventually('it has begun', () => state.rule === 'never');
    await eventually('the connection is closed', () => isIdle());
    const before = counts.bytes;
    expect(before).toBeLessThan(bytes.length);
    network.onBytes = () => undefined;
    state.rule = 'always';
    await isSent();
    expect((await received(id)).equals(bytes)).toBe(true);
  });

  it('waits while live messages wait', async () => {
    const { files, state, counts, reports, isSent } = await lab();
    state.busy = true;
    await files.add({ ...about, content: { bytes: randomBytes(1_000) } });
    await eventually('it is asked for', () => reports.some((each) => each.state === 'requesting'));
    expect(counts.requests).toBe(0);
    state.busy = false;
    await isSent();
  });

  it('has little under way where the network takes nothing more', async () => {
    const { files, network, counts, stall, uploader, isIdle } = await lab();
    const { count } = await unsentBytes();
    network.onBytes = () => {
      if (counts.bytes > 100_000) stall();
    };
    await files.add({ ...about, content: { bytes: randomBytes(20_000_000) } });
    const under_way = (): number => count((network.tcp && descriptorOf(network.tcp)) ?? -1);
    await eventually('the network is full', () => under_way() > 0);
    for (let [before, same] = [0, 0]; same < 20; same = uploader.view.sent_bytes === before ? same + 1 : 0) {
      before = uploader.view.sent_bytes;
      await sleep(10, AbortSignal.timeout(10_000));
    }
    expect(under_way()).toBeLessThanOrEqual(1024 * 1024);
    expect(network.tcp?.writableLength).toBe(0);
    expect(isIdle()).toBe(false);
  });

  it('obeys the rule of the link by which the kernel reaches the cloud, and asks once', async () => {
    const { files, state, counts, reports, isSent } = await lab();
    state.rule_of_way = 'never';
    await files.add({ ...about, content: { bytes: randomBytes(1_000) } });
    await eventually('it has looked, and looks again', () => state.looks >= 2);
    expect(counts).toEqual({ requests: 0, bytes: 0 });
    state.rule_of_way = 'always';
    await isSent();
    expect(reports.filter((each) => each.state === 'requesting')).toHaveLength(2);
  });

  it('gives up a file that has changed on the disk, once the server refuses its hash', async () => {
    const { files, fault, isSent } = await lab();
    const id = await files.add({ ...about, content: { bytes: randomBytes(1_000) } });
    await appendFile(files.store.pathOf(id), 'x');
    fault.handle = firstPatch(460);
    await isSent();
    expect(files.view().dropped).toEqual({ lost: 1 });
  });

  it.each<[string, FileAnswer, string]>([
    [
      'no TLS',
      { want: 'upload', url: 'http://192.0.2.1/u', token: 't', expires_at: '2026-11-29T10:00:00Z' },
      texts.url_refused('http://192.0.2.1/u'),
    ],
  ])('is not made at an address with %s', async (_, answer, fault) => {
    const { files, state, uploader, counts } = await lab();
    state.answer = () => answer;
    await files.add({ ...about, content: { bytes: randomBytes(10) } });
    await eventually('it is refused', () => uploader.view.fault !== null);
    expect(uploader.view.fault).toBe(fault);
    expect(counts.requests).toBe(0);
  });

  it('leaves a file for later where the cloud has no room, and sends the others', async () => {
    const { files, state, uploader } = await lab();
    const [large] = [await files.add({ ...about, name: 'large', content: { bytes: randomBytes(500) } })];
    state.answer = ({ id }) => (id === large ? { want: 'later', retry_s: 3_600, reason: 'full' } : undefined);
    await files.add({ ...about, content: { bytes: randomBytes(10) } });
    await eventually('the other is sent', () => files.store.files.length === 1);
    expect(files.store.files[0]?.name).toBe('large');
    expect(uploader.view.fault).toBeNull();
  });
});

/** Answers the first PATCH like this. */
function firstPatch(status: number): Handle {
  let isFirst = true;
  return (request, response) => {
    if (request.method !== 'PATCH' || !isFirst) return false;
    isFirst = false;
    response.writeHead(status).end();
    return true;
  };
}
