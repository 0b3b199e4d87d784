/** A kill between the attempt and its outcome: the message is delivered again, with the same id. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { channels } from '../../../../src/contract/topics.ts';
import { makeKey } from '../../../../src/cloud/principal.ts';
import { openSqlite } from '../../../../src/cloud/sql/sqlite.ts';
import { sqlStore } from '../../../../src/cloud/store/sql-store.ts';
import { makeSecret } from '../../../../src/cloud/webhooks/signature.ts';
import { eventually } from '../../../support/eventually.ts';
import { startWebhookReceiver } from '../../../support/service/webhook-receiver.ts';
import { withDirectory } from '../../../support/temporary.ts';
import { registeredWebhook } from '../../../support/service/registered-webhook.ts';
import { received, start_ms } from '../story.ts';

const program = fileURLToPath(new URL('../../../support/service/deliverer-process.ts', import.meta.url));
const webhook_id = '00000000-0000-4000-8000-000000000001';
/** Beyond the lease of the process that was killed. */
const lease_over_ms = 60_000;
const messages = 12;

it('delivers every message at least once through kills of the process', async () => {
  const receiver = await startWebhookReceiver();
  await withDirectory(async (dir) => {
    const file = join(dir, 'service.db');
    const store = sqlStore(openSqlite(file));
    const { key } = makeKey({ label: 'test', scopes: [], kits: '*', expires_ms: null }, start_ms);
    await store.addKey(key);
    await store.addWebhook(
      registeredWebhook({
        webhook_id,
        url: receiver.url,
        types: ['alarm'],
        kits: '*',
        key_id: key.key_id,
        secrets: [{ text: makeSecret(), expires_ms: null }],
        created_ms: start_ms,
      }),
    );
    const alarms = Array.from({ length: messages }, (_, n) =>
      received({
        channel: channels.event(`00000000-0000-4000-8000-${String(n).padStart(12, '0')}`, 'motion'),
        seq: n + 1,
        data: { detected: true },
      }),
    );
    await store.commit(alarms, start_ms);
    const counts = async () => (await store.webhook(webhook_id))?.counts;
    const ids = () => receiver.received.map(({ headers }) => String(headers['webhook-id']));
    const start = (ahead_ms: number) =>
      spawn(process.execPath, [program, file, String(ahead_ms)], { stdio: 'ignore' });
    try {
      for (let round = 0; round < 3; round += 1) {
        receiver.state.manner = 'hang';
        const before = receiver.received.length;
        const child = start(round * lease_over_ms);
        await eventually('attempts', () => receiver.received.length >= before + 4);
        child.kill('SIGKILL');
        await once(child, 'exit');
        expect(await counts()).toMatchObject({ accepted: messages, delivered: 0, waiting: messages });
      }
      const attempted = new Set(ids());
      receiver.state.manner = 200;
      const last = start(3 * lease_over_ms);
      await eventually('all', async () => (await counts())?.delivered === messages);
      last.kill('SIGKILL');
      await once(last, 'exit');
      const all = ids();
      expect(new Set(all).size).toBe(messages);
      // What was in progress at a kill came again under its own id.
      for (const id of attempted) expect(all.filter((each) => each === id).length).toBeGreaterThan(1);
    } finally {
      await store.close();
      await receiver.stop();
    }
  });
});
