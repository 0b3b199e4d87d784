/** A task orders a support bundle: the shipped daemon makes it, and the file for the cloud has no secret. */
import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { fileReport } from '../../../src/contract/files.ts';
import { startMosquitto } from '../../support/brokers/broker.ts';
import { withKit } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';

const secret = 'the-secret-of-the-media-server';

it.skipIf(peerMissing('mosquitto'))('a support bundle becomes a file for the cloud, by a task', async () => {
  const broker = await startMosquitto();
  try {
    await withKit({ rehearsed: false }, async (kit) => {
      const password_file = join(kit.dir, 'media-password');
      await writeFile(password_file, secret, { mode: 0o600 });
      const options = { interval_s: 1, roots: kit.machine.roots, commands: ['support_bundle'] };
      const viewer_url = `http://viewer:${secret}@127.0.0.1:1`;
      await kit.configure({
        broker: { url: broker.url },
        media: { server: 'mediamtx', viewer_url, username: 'kit', password_file },
        drivers: [{ driver: 'gateway', options }],
      });
      const cloud = await kit.listen(broker.url);
      await kit.start();
      const { channel } = await cloud.until(
        'the gateway offers it',
        ({ channel, data }) =>
          /^asset\/.*\/commands$/u.test(channel) && JSON.stringify(data).includes('support_bundle'),
      );
      const asset_id = channel.split('/')[1];
      const task_id = randomUUID();
      const created_at = new Date().toISOString();
      const order = { task_id, asset_id, command_name: 'support_bundle', payload: {}, created_at };
      await cloud.send({ kind: 'task', task_id }, order);
      const end = await cloud.until('the task ends', ({ data }) =>
        ['completed', 'failed'].some((status) => status === data?.['status']),
      );
      expect(end.data).toMatchObject({ status: 'completed' });
      const announced = await cloud.until('it is announced', (each) => each.channel.startsWith('file/'));
      const report = fileReport.parse(announced.data);
      expect(report).toMatchObject({
        kind: 'support_bundle',
        asset_id: null,
        content_type: 'application/gzip',
      });
      expect(end.data?.['result']).toMatchObject({ file_id: report.id });
      const text = gunzipSync(await readFile(join(kit.dir, 'state/files', report.id))).toString();
      expect(text).toContain('/doctor.txt');
      expect(text).toContain(kit.kit_id);
      expect(text).not.toContain(secret);
    });
  } finally {
    await broker.stop();
  }
});
