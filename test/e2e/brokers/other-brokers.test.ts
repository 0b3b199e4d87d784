/** Brokers that are not mosquitto: presence, tasks, an outage with messages buffered, and settings that the cloud retained. */
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startCloud } from '../../support/kit/cloud.ts';
import { type ErlangBroker, startEjabberd } from '../../support/brokers/erlang-brokers.ts';
import { startRabbitmq } from '../../support/brokers/rabbitmq.ts';
import { eventually } from '../../support/eventually.ts';
import { withKit } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';
import { startProxy } from '../../support/brokers/proxy.ts';

const patience_ms = 180_000;

/** Answers the version of MQTT that the kit came to use. */
async function serve(broker: ErlangBroker): Promise<string | null> {
  const { port, username, password } = broker;
  const proxy = await startProxy(port);
  try {
    let protocol: string | null = null;
    await withKit({ rehearsed: true }, async (kit) => {
      const password_file = join(kit.dir, 'password');
      await writeFile(password_file, `${password}\n`, { mode: 0o600 });
      const drivers = [kit.rehearse({ gps_hz: 5 })];
      const url = `mqtt://127.0.0.1:${proxy.port}`;
      await kit.configure({ broker: { url, username, password_file }, drivers });
      const cloud = await startCloud(`mqtt://127.0.0.1:${port}`, kit.kit_id, {
        protocolVersion: 4,
        username,
        password,
      });
      try {
        await cloud.send({ kind: 'config' }, { rates_hz: { gps: 2 } }, { retain: true });
        const daemon = await kit.start();
        await cloud.until('the birth', ({ data }) => data?.['online'] === true);
        await cloud.until(
          'the drone',
          ({ channel, data }) => channel === `asset/${kit.drone()}` && data?.['status'] === 'online',
        );
        const { uplink } = await kit.status();
        expect(uplink.state).toBe('connected');
        protocol = uplink.protocol;

        const task_id = randomUUID();
        const created_at = new Date().toISOString();
        const order = { asset_id: kit.drone(), command_name: 'work', payload: { ms: 0 }, created_at };
        await cloud.send({ kind: 'task', task_id }, { task_id, ...order });
        await cloud.until(
          'the end of the task',
          ({ channel, data }) => channel === `task/${task_id}` && data?.['status'] === 'completed',
        );

        const states = cloud.on('state').length;
        await cloud.send({ kind: 'sync' }, {});
        await eventually('the state comes again', () => cloud.on('state').length > states);

        proxy.setAdmission('refuse');
        proxy.cut();
        await eventually('messages are buffered', async () => (await kit.status()).outbox.buffered > 5);
        proxy.setAdmission('pass');
        await cloud.until('what was buffered', ({ historical }) => historical);
        await eventually('nothing is buffered', async () => (await kit.status()).outbox.buffered <= 1);
        const { dropped, quarantined, balanced } = (await kit.status()).outbox;
        expect({ quarantined, balanced }).toEqual({ quarantined: 0, balanced: true });
        expect(Object.keys(dropped).filter((reason) => reason !== 'superseded')).toEqual([]);
        await daemon.end('SIGTERM');
        await cloud.until('the farewell', ({ data }) => data?.['reason'] === 'stopped');
      } finally {
        await cloud.leave();
      }
    });
    return protocol;
  } finally {
    await proxy.close();
    await broker.stop();
  }
}

describe.skipIf(peerMissing('rabbitmq-server', 'epmd'))('RabbitMQ', () => {
  it(
    'serves a kit, over MQTT 3.1.1 because it hangs up on MQTT 5',
    async () => {
      expect(await serve(await startRabbitmq())).toBe('3.1.1');
    },
    patience_ms,
  );
});

describe.skipIf(peerMissing('ejabberdctl', 'erl'))('ejabberd', () => {
  it(
    'serves a kit over MQTT 5',
    async () => {
      expect(await serve(await startEjabberd())).toBe('5');
    },
    patience_ms,
  );
});
