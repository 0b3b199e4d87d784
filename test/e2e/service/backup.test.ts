/** The page "Backup and restore", step by step, on a service whose kit goes on sending. */
import { copyFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connectAsync } from 'mqtt';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { channels, upTopic } from '../../../src/contract/topics.ts';
import { startMosquitto } from '../../support/brokers/broker.ts';
import { startChild } from '../../support/child.ts';
import { kit_id } from '../../support/contract-samples.ts';
import { eventually } from '../../support/eventually.ts';
import { command_file } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';
import { freePort } from '../../support/ports.ts';
import { withDirectory } from '../../support/temporary.ts';

const counts = z.object({ received: z.number(), missing: z.number() });

it.skipIf(peerMissing('mosquitto'))(
  'a backup that is made while the service runs is restored, and what came since is named as missing',
  async () => {
    await withDirectory(async (dir) => {
      const broker = await startMosquitto();
      const port = await freePort();
      const config = join(dir, 'service.yaml');
      await writeFile(
        config,
        `broker: { url: ${broker.url} }\ndatabase: service.db\nlisten: 127.0.0.1:${port}\n`,
      );
      const run = async (...words: readonly string[]) =>
        startChild([command_file, 'service', ...words, '--config', config]).ended;
      const key = (await run('key', 'add', 'ops', '--all-kits')).stdout.trim();
      const ask = async (path: string): Promise<Response> =>
        fetch(`http://127.0.0.1:${port}${path}`, { headers: { 'x-api-key': key } });
      const start = async () => {
        const child = startChild([command_file, 'service', '--config', config]);
        await eventually('ready', async () => (await ask('/ready').catch(() => undefined))?.status === 200);
        return child;
      };
      const queue = async () => counts.parse(await (await ask(`/api/kits/${kit_id}/queue`)).json());
      const kit = await connectAsync(broker.url, { protocolVersion: 5, clientId: kit_id });
      let seq = 0;
      const send = async (): Promise<void> => {
        seq += 1;
        const message = { time: new Date().toISOString(), epoch: 1, seq, data: { battery: seq % 100 } };
        await kit.publishAsync(upTopic(kit_id, channels.telemetry), JSON.stringify(message), { qos: 1 });
      };
      const stored = async (messages: number): Promise<void> =>
        eventually('stored', async () => (await queue()).received === messages);
      let child = await start();
      try {
        for (let n = 0; n < 20; n += 1) await send();
        await stored(20);
        const backup = join(dir, 'backup.db');
        expect(await run('backup', backup)).toMatchObject({ code: 0 });
        expect((await stat(backup)).mode & 0o777).toBe(0o600);
        expect(await run('backup', backup)).toMatchObject({ code: 1 });
        for (let n = 0; n < 5; n += 1) await send();
        await stored(25);

        await child.end('SIGTERM');
        for (const part of ['', '-wal', '-shm']) await rm(join(dir, `service.db${part}`), { force: true });
        await copyFile(backup, join(dir, 'service.db'));
        child = await start();
        expect(await queue()).toMatchObject({ received: 20, missing: 0 });
        await send();
        await stored(21);
        expect(await queue()).toMatchObject({ missing: 5 });
      } finally {
        await child.end('SIGTERM');
        await kit.endAsync(true);
        await broker.stop();
      }
    });
  },
);
