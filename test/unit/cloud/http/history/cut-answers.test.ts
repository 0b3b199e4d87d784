/** Answers that end before their end: their clients see it in every form, and the log has one line with kit, answer and cause. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, get, type IncomingMessage } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { OpenAPIHono } from '@hono/zod-openapi';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { StorageUnavailable } from '../../../../../src/platform/errors.ts';
import { HistoryOperations } from '../../../../../src/cloud/history/reading/operations.ts';
import type { Env } from '../../../../../src/cloud/http/context.ts';
import { cuttable_paths, noteCuts } from '../../../../../src/cloud/http/history/cut.ts';
import { openPostgres } from '../../../../../src/cloud/sql/postgres.ts';
import { sqlStore } from '../../../../../src/cloud/store/sql-store.ts';
import { texts } from '../../../../../src/cloud/texts.ts';
import { channels } from '../../../../../src/contract/topics.ts';
import { asset_id, kit_id, samples } from '../../../../support/contract-samples.ts';
import { startPostgres } from '../../../../support/database/postgres.ts';
import { eventually } from '../../../../support/eventually.ts';
import { peerMissing } from '../../../../support/peers.ts';
import { type RecordingLog, recordingLog } from '../../../../support/recording-log.ts';
import { type ServiceLab, startServiceLab } from '../../../../support/service/service-lab.ts';

/** Six pages, more than a connection holds. */
const messages = 60;
const note_bytes = 75_000;

async function publishAll(service: ServiceLab): Promise<void> {
  await service.publish(channels.asset(asset_id), samples['announcement'] ?? {});
  for (let n = 0; n < messages; n += 1) {
    // No text that compression makes short.
    const note = randomBytes(note_bytes).toString('base64');
    await service.publish(channels.feed(asset_id, 'gps'), { lat: 47, lon: 8, alt_m: n, note });
  }
}

let lab: ServiceLab;
const printed: unknown[] = [];
beforeAll(async () => {
  lab = await startServiceLab(kit_id, { hasHistory: true });
  await publishAll(lab);
});
beforeEach(() => {
  printed.length = 0;
  for (const way of ['error', 'info'] as const)
    vi.spyOn(console, way).mockImplementation((...words: unknown[]) => void printed.push(words));
});
afterEach(() => vi.restoreAllMocks());
afterAll(async () => lab.stop());

async function ask(url: string, coding: string, key = lab.key): Promise<IncomingMessage> {
  const headers = { 'x-api-key': key, 'accept-encoding': coding };
  const request = get(url, { headers, agent: false });
  request.on('error', () => undefined);
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  answer.on('error', () => undefined);
  return answer;
}

async function readAll(answer: IncomingMessage): Promise<number> {
  let bytes = 0;
  answer.on('data', (some: Buffer) => (bytes += some.length));
  await new Promise((resolve) => answer.once('close', resolve));
  return bytes;
}

const cutLines = (log: RecordingLog) => log.lines.filter(({ sentence }) => sentence === texts.log_answer_cut);

/** The lines since the first call. */
function newLines(log: RecordingLog) {
  const before = cutLines(log).length;
  return async () => {
    await eventually('the line', () => cutLines(log).length > before);
    return cutLines(log).slice(before);
  };
}

describe.each(['identity', 'gzip'])('An export with the coding %s', (coding) => {
  const address = (format: string): string => `${lab.url}/api/kits/${kit_id}/export?format=${format}`;

  it.each(['ndjson', 'csv', 'flat_csv'])(
    'that the database ends half way looks cut, and is one line of the log: %s',
    async (format) => {
      const lines = newLines(lab.log);
      const page = HistoryOperations.prototype.page.bind(new HistoryOperations(lab.store));
      let left = 3;
      vi.spyOn(HistoryOperations.prototype, 'page').mockImplementation(async (...asked) => {
        // Flat CSV reads all pages for its columns before.
        const isFirstPass = format === 'flat_csv' && left === 3;
        if (!isFirstPass && left === 0) throw new StorageUnavailable('the server is shutting down');
        const found = await page(...asked);
        if (!isFirstPass || found.next === null) left -= 1;
        return found;
      });
      const answer = await ask(address(format), coding);
      expect(await readAll(answer)).toBeGreaterThan(note_bytes);
      expect(answer.complete).toBe(false);
      const facts = { kit_id, answer: 'export', format, reason: 'the server is shutting down' };
      expect(await lines()).toMatchObject([{ level: 'warn', facts }]);
      expect(printed).toEqual([]);
    },
  );

  it('whose client hangs up is one line of the log', async () => {
    const lines = newLines(lab.log);
    const answer = await ask(address('csv'), coding);
    await once(answer, 'readable');
    answer.destroy();
    const facts = { kit_id, answer: 'export', format: 'csv', reason: texts.client_left };
    expect(await lines()).toMatchObject([{ level: 'info', facts }]);
    expect(printed).toEqual([]);
  });

  it('that is read to its end has no line', async () => {
    const before = cutLines(lab.log).length;
    const answer = await ask(address('csv'), coding);
    expect(await readAll(answer)).toBeGreaterThan(messages * note_bytes);
    expect(answer.complete).toBe(true);
    expect(cutLines(lab.log)).toHaveLength(before);
  });
});

describe.skipIf(peerMissing('postgres', 'initdb', 'setpriv'))('An export on PostgreSQL', () => {
  it(
    'looks cut when the server ends half way, and is whole when asked again after it started',
    { tags: 'long' },
    async () => {
      const server = await startPostgres();
      const url = await server.newDatabase('kits');
      const store = sqlStore(await openPostgres({ url, password: server.password }));
      const service = await startServiceLab(kit_id, { hasHistory: true, store });
      try {
        await publishAll(service);
        const address = `${service.url}/api/kits/${kit_id}/export?format=ndjson`;
        const answer = await ask(address, 'gzip', service.key);
        await once(answer, 'readable');
        await server.kill();
        await readAll(answer);
        expect(answer.complete).toBe(false);
        await eventually('the line', () => cutLines(service.log).length > 0);
        expect(cutLines(service.log)).toMatchObject([{ level: 'warn', facts: { kit_id, answer: 'export' } }]);
        await server.start();
        await eventually('the export is whole', async () => {
          const again = await ask(address, 'gzip', service.key);
          await readAll(again);
          return again.statusCode === 200 && again.complete;
        });
      } finally {
        await service.stop();
        await server.stop();
      }
    },
  );
});

describe('A track', () => {
  it.each(['geojson', 'gpx', 'kml', 'csv'])(
    'is no answer of 200 when the database fails while it is read: %s',
    async (format) => {
      const failed = async (): Promise<never> =>
        Promise.reject(new StorageUnavailable('the server is shutting down'));
      vi.spyOn(HistoryOperations.prototype, 'track').mockImplementation(failed);
      const answer = await ask(
        `${lab.url}/api/kits/${kit_id}/assets/${asset_id}/track?format=${format}`,
        'gzip',
      );
      await readAll(answer);
      expect([answer.statusCode, answer.complete]).toEqual([503, true]);
    },
  );

  it('whose client stops reading looks cut, and is one line of the log', async () => {
    const idle_ms = 200;
    const log = recordingLog();
    const app = new OpenAPIHono<Env>();
    app.on('GET', cuttable_paths, noteCuts(log));
    app.get('/api/kits/:kit_id/assets/:asset_id/track', (c) => c.body('x'.repeat(50_000_000)));
    const answerAll = getRequestListener(app.fetch, { overrideGlobalObjects: false });
    const server = createServer((request, response) => void answerAll(request, response));
    server.setTimeout(idle_ms);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const at = server.address();
    const port = typeof at === 'object' && at ? at.port : 0;
    const path = `/api/kits/${kit_id}/assets/${asset_id}/track?format=gpx`;
    const answer = await ask(`http://127.0.0.1:${port}${path}`, 'identity');
    await eventually('the line', () => cutLines(log).length > 0);
    const facts = { kit_id, asset_id, answer: 'track', format: 'gpx', reason: texts.client_stalled(0.2) };
    expect(cutLines(log)).toMatchObject([{ level: 'warn', facts }]);
    await readAll(answer);
    expect(answer.complete).toBe(false);
    server.close();
  });
});
