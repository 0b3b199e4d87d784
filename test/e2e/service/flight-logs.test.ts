/** What a kit has for the cloud comes there by itself, or stays where the link forbids it. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { FakeDrone } from '../../fakes/fake-drone.ts';
import { StoredLogs } from '../../fakes/stored-logs.ts';
import { startProxy } from '../../support/brokers/proxy.ts';
import { eventually } from '../../support/eventually.ts';
import { peerMissing } from '../../support/peers.ts';
import { freePort } from '../../support/ports.ts';
import { type KitAndService, withKitAndService } from '../../support/service/kit-and-service.ts';

const flights_count = 20;
const patience_ms = 120_000;
const begun_s = Date.UTC(2026, 10, 29, 12) / 1_000;
const listed = z.object({
  files: z.array(z.object({ id: z.string(), state: z.string(), name: z.string() })),
});
type Listed = z.output<typeof listed>['files'];

/** A kit whose files go through a proxy, and a vehicle with its logs. */
async function withVehicle(
  play: (scene: {
    readonly scene: KitAndService;
    readonly link: Awaited<ReturnType<typeof startProxy>>;
    readonly drone: FakeDrone;
    readonly logs: StoredLogs;
    readonly configure: (upload: object) => Promise<void>;
    readonly files: () => Promise<Listed>;
    readonly contentOf: (id: string) => Promise<Buffer>;
  }) => Promise<void>,
): Promise<void> {
  const port = await freePort();
  const link = await startProxy(port);
  const url = `http://127.0.0.1:${link.port}`;
  const drone_port = await freePort();
  const drone = new FakeDrone({ port: drone_port });
  const logs = new StoredLogs([]);
  drone.logs = logs;
  try {
    await withKitAndService({ port, files: { dir: 'files', url } }, async (scene) => {
      const { kit, service, broker } = scene;
      await drone.start();
      await play({
        scene,
        link,
        drone,
        logs,
        configure: async (upload) =>
          kit.configure({
            broker: { url: broker.url },
            files: { upload },
            drivers: [
              {
                driver: 'mavlink',
                options: {
                  links: [{ kind: 'udp_listen', host: '127.0.0.1', port: drone_port }],
                  flight_logs: { after_flight: true, bytes_per_s: 200_000 },
                },
              },
            ],
          }),
        async files() {
          const answer = await service.ask(`${kit.kit_id}/files?limit=500`).catch(() => undefined);
          return answer?.ok ? listed.parse(await answer.json()).files : [];
        },
        async contentOf(id) {
          const answer = await service.ask(`${kit.kit_id}/files/${id}/content`);
          return Buffer.from(await answer.arrayBuffer());
        },
      });
    });
  } finally {
    drone.stop();
    await link.close();
  }
}

/** Bytes without a period, so that a shifted part differs. */
function bytesOf(length: number, seed: number): Uint8Array {
  let state = seed;
  return Uint8Array.from({ length }, () => (state = (state * 48_271) % 2_147_483_647) & 0xff);
}

describe.skipIf(peerMissing('mosquitto'))('Flight logs', () => {
  it(
    'of 20 flights are in the cloud byte for byte without a hand, through kills and cuts',
    { timeout: 2_400_000 },
    async () => {
      await withVehicle(
        async ({ scene: { kit, service, broker }, link, drone, logs, configure, files, contentOf }) => {
          await configure({ default: 'always' });
          const cloud = await kit.listen(broker.url);
          let daemon = await kit.start();
          const isArmed = async (armed: boolean): Promise<unknown> => {
            const from = cloud.heard.length;
            return cloud.until(`armed is ${armed}`, (message) => {
              const isNew = cloud.heard.indexOf(message) >= from;
              return isNew && message.channel.endsWith('/sys_status') && message.data?.['armed'] === armed;
            });
          };
          const kill = async (): Promise<void> => {
            await daemon.end('SIGKILL');
            daemon = await kit.start();
          };
          const stored = async (): Promise<Listed> =>
            (await files()).filter(({ state }) => state === 'stored');
          const flown: Uint8Array[] = [];
          const asked = (): number => logs.asked.length;
          for (let flight = 1; flight <= flights_count; flight += 1) {
            drone.flight.armed = true;
            await isArmed(true);
            const content = bytesOf(20_000 + 5_000 * flight, flight);
            flown.push(content);
            logs.logs.push({ time_utc: begun_s + 600 * flight, content });
            const [before, bytes] = [asked(), link.counters.up_bytes];
            drone.flight.armed = false;
            await isArmed(false);
            // While the autopilot closes its log, in the middle of the transfer, and in the middle of the upload.
            if (flight === 4) await kill();
            if (flight === 8) {
              await eventually('some of it is there', () => asked() > before + 1, patience_ms);
              await kill();
            }
            if (flight === 12 || flight === 16) {
              await eventually(
                'it is being sent',
                () => link.counters.up_bytes > bytes + 10_000,
                patience_ms,
              );
              link.cut();
              if (flight === 16) {
                await service.end('SIGKILL');
                await service.start();
              }
            }
            const isThere = async (): Promise<boolean> => (await stored()).length >= flown.length;
            await eventually(`log ${flight} is there`, isThere, patience_ms);
          }
          const got = await Promise.all((await stored()).map(async ({ id }) => contentOf(id)));
          expect(got).toHaveLength(flights_count);
          for (const content of flown) expect(got.some((each) => each.equals(content))).toBe(true);
        },
      );
    },
  );

  it('stay at the kit where the link forbids files, without a byte, and come on order where it allows that', async () => {
    await withVehicle(async ({ scene: { kit, service, broker }, link, drone, logs, configure, files }) => {
      await configure({ default: 'never' });
      const cloud = await kit.listen(broker.url);
      const daemon = await kit.start();
      for (const each of [1, 2]) {
        logs.logs.push({ time_utc: begun_s + each, content: bytesOf(9_000, each) });
        drone.flight.armed = true;
        const armed = (is: boolean) => async (): Promise<boolean> =>
          cloud.on('feed/').findLast(({ channel }) => channel.endsWith('/sys_status'))?.data?.['armed'] ===
          is;
        await eventually('it flies', armed(true));
        drone.flight.armed = false;
        await eventually(
          'it is announced',
          async () => (await files()).filter(({ state }) => state === 'at_kit').length === each,
          patience_ms,
        );
      }
      const [ordered, other] = await files();
      const order = await service.ask(`${kit.kit_id}/files/${ordered?.id}/request`, { method: 'POST' });
      expect(order.status).toBe(202);
      await eventually('the order has come', async () => (await kit.status()).files?.kept.ordered === 1);
      expect(link.counters.up_bytes).toBe(0);
      await configure({ default: 'on_order' });
      daemon.send('SIGHUP');
      const stateOf = async (id?: string): Promise<string | undefined> =>
        (await files()).find((each) => each.id === id)?.state;
      await eventually('the ordered one comes', async () => (await stateOf(ordered?.id)) === 'stored');
      expect(await stateOf(other?.id)).toBe('at_kit');
    });
  });
});
