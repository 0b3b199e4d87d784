/** Webhooks of two replicas on one PostgreSQL, to a receiver with TLS whose authority is the operator's own, with kills. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { channels } from '../../../src/contract/topics.ts';
import { makeKey } from '../../../src/cloud/principal.ts';
import { openPostgres } from '../../../src/cloud/sql/postgres.ts';
import { sqlStore, type Store } from '../../../src/cloud/store/sql-store.ts';
import { makeSecret } from '../../../src/cloud/webhooks/signature.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { eventually } from '../../support/eventually.ts';
import { peerMissing } from '../../support/peers.ts';
import { startPostgres } from '../../support/database/postgres.ts';
import { startWebhookReceiver } from '../../support/service/webhook-receiver.ts';
import { withDirectory } from '../../support/temporary.ts';
import { registeredWebhook } from '../../support/service/registered-webhook.ts';
import { received, start_ms } from '../../unit/cloud/story.ts';

const program = fileURLToPath(new URL('../../support/service/deliverer-process.ts', import.meta.url));
const webhook_id = '00000000-0000-4000-8000-000000000001';
const assets = [0, 1, 2, 3, 4, 5].map((n) => `00000000-0000-4000-8000-00000000000${n}`);
const per_asset = 12;
const total = assets.length * per_asset;
/** The claims of a killed replica end 20 s after this. */
const timeout_ms = 1_000;
const patience_ms = 120_000;

it.skipIf(peerMissing('postgres', 'initdb', 'setpriv', 'openssl'))(
  'two replicas deliver each message at least once through kills, never two at a time, and those of an asset in order',
  { timeout: 240_000 },
  async () => {
    const server = await startPostgres();
    const ends: (() => Promise<unknown>)[] = [async () => server.stop()];
    try {
      await withDirectory(async (dir) => {
        const certificates = await makeCertificates(dir, 'receiver');
        const { cert, key } = certificates.server;
        const receiver = await startWebhookReceiver({ cert: await readFile(cert), key: await readFile(key) });
        ends.unshift(async () => receiver.stop());
        receiver.state.manner = { slow_ms: 20 };
        const url = await server.newDatabase('kits');
        const store = sqlStore(await openPostgres({ url, password: server.password }));
        ends.unshift(async () => store.close());
        await register(store, receiver.url);
        const start = (authority: string | undefined) => {
          const child = spawn(process.execPath, [program, url, '0', String(timeout_ms)], {
            stdio: 'ignore',
            env: {
              ...process.env,
              PGPASSWORD: server.password,
              ...(authority !== undefined && { NODE_EXTRA_CA_CERTS: authority }),
            },
          });
          const exited = once(child, 'exit');
          const kill = async (): Promise<void> => {
            child.kill('SIGKILL');
            await exited;
          };
          ends.unshift(kill);
          return kill;
        };
        const add = async (from: number, to: number): Promise<void> => {
          for (let n = from; n < to; n += 1) {
            const alarms = assets.map((asset, a) =>
              received({
                channel: channels.event(asset, 'motion'),
                seq: n * assets.length + a + 1,
                data: { detected: true, n },
              }),
            );
            await store.commit(alarms, Date.now());
          }
        };
        const delivered = async (): Promise<number> =>
          (await store.webhook(webhook_id))?.counts.delivered ?? 0;

        // Without the operator's authority nothing is delivered, and nothing is given up.
        const stranger = start(undefined);
        await add(0, 1);
        await eventually(
          'the certificate is refused',
          async () => (await store.webhook(webhook_id))?.last_fault !== null,
          patience_ms,
        );
        await stranger();
        expect(receiver.received).toEqual([]);
        await store.changeWebhook(webhook_id, { disabled_reason: null });

        const first = start(certificates.ca);
        start(certificates.ca);
        await add(1, per_asset / 2);
        await eventually('half of the first ones', async () => (await delivered()) >= 12, patience_ms);
        await first();
        await add(per_asset / 2, per_asset);
        start(certificates.ca);
        await eventually('all are delivered', async () => (await delivered()) === total, patience_ms);

        const ids = receiver.received.map(({ headers }) => String(headers['webhook-id']));
        expect(new Set(ids).size).toBe(total);
        expect(receiver.overlaps).toEqual([]);
        for (const asset of assets) expect(firstOrder(receiver.received, asset)).toEqual(rising);
      });
    } finally {
      for (const end of ends) await end();
    }
  },
);

/** What follows the one message that the certificate had refused: that one may come at any place. */
const rising = Array.from({ length: per_asset - 1 }, (_, n) => n + 1);

/** The numbers of the messages of this asset in the order of their first arrival. */
function firstOrder(received_: readonly { readonly body: string }[], asset: string): readonly number[] {
  const numbers = received_.flatMap(({ body }) => {
    const { data } = JSON.parse(body) as { data: { asset_id: string; message: { n: number } } };
    return data.asset_id === asset && data.message.n > 0 ? [data.message.n] : [];
  });
  return [...new Set(numbers)];
}

async function register(store: Store, url: string): Promise<void> {
  const { key } = makeKey({ label: 'test', scopes: [], kits: '*', expires_ms: null }, start_ms);
  await store.addKey(key);
  await store.addWebhook(
    registeredWebhook({
      webhook_id,
      url,
      types: ['alarm'],
      kits: '*',
      key_id: key.key_id,
      secrets: [{ text: makeSecret(), expires_ms: null }],
      created_ms: start_ms,
    }),
  );
}
