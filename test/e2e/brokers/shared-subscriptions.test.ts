/** Shared subscriptions on which nothing arrives, at real brokers, and those that work although a replica gets nothing. */
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connectAsync, type MqttClient } from 'mqtt';
import { afterEach, describe, expect, it } from 'vitest';
import { writeEnvelope } from '../../../src/contract/envelope.ts';
import { channels, upTopic } from '../../../src/contract/topics.ts';
import { every } from '../../../src/platform/time.ts';
import { BrokerLink } from '../../../src/cloud/broker/broker-link.ts';
import { ShareCheck } from '../../../src/cloud/broker/share-check.ts';
import { texts } from '../../../src/cloud/texts.ts';
import { startMosquitto } from '../../support/brokers/broker.ts';
import { startRabbitmq } from '../../support/brokers/rabbitmq.ts';
import { eventually } from '../../support/eventually.ts';
import { peerMissing } from '../../support/peers.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { testDirectory } from '../../support/test-directory.ts';

const patience_ms = 60_000;
const epoch = 17;

interface Login {
  readonly username: string;
  readonly password: string | undefined;
}

describe('a shared subscription', () => {
  const ends: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0).toReversed()) await end();
  });

  /** A replica that stores into `stored`, as into a database that all replicas share. */
  function startReplica(
    url: string,
    { username, password }: Login,
    { stored, hasOnlineKits }: { readonly stored: Set<string>; readonly hasOnlineKits: boolean },
  ) {
    const reports: (string | undefined)[] = [];
    const shareCheck = new ShareCheck({
      share: 'kits',
      times: { quiet_ms: 1_000, peek_ms: 4_000, settle_ms: 2_000 },
      random: Math.random,
      isReceived: async (kit_id, of, seq) => stored.has(`${kit_id} ${of} ${seq}`),
      hasOnlineKits: async () => hasOnlineKits,
      report: (fault) => reports.push(fault),
    });
    const tls = { ca: undefined, cert: undefined, key: undefined };
    const link = new BrokerLink({
      broker: {
        url,
        username,
        password,
        ...tls,
        protocol: 'auto',
        keepalive_s: 30,
        connect_timeout_ms: 10_000,
      },
      client_id: `replica-${randomUUID().slice(0, 8)}`,
      share: 'kits',
      shareCheck,
      sweep_ms: 200,
      take: async ({ kit_id, messages }) => {
        for (const { epoch: of, seq } of messages) stored.add(`${kit_id} ${of} ${seq}`);
      },
      log: recordingLog(),
    });
    const end = new AbortController();
    const running = link.run(end.signal);
    ends.push(async () => {
      end.abort();
      await running;
    });
    return { link, reports };
  }

  /** Publishes telemetry of a kit, so many times a second, until the end of the test. */
  async function playKit(url: string, { username, password }: Login, every_ms: number): Promise<string> {
    const kit_id = randomUUID();
    const client: MqttClient = await connectAsync(
      url,
      { clientId: kit_id, protocolVersion: 4, username, ...(password !== undefined && { password }) },
      false,
    );
    const stop = new AbortController();
    let seq = 0;
    every(every_ms, stop.signal, () => {
      seq += 1;
      const text = writeEnvelope({ epoch, seq, time_ms: Date.now() }, '{"battery":82}');
      client.publish(upTopic(kit_id, channels.telemetry), text, { qos: 1 });
    });
    ends.push(async () => {
      stop.abort();
      await client.endAsync(true);
    });
    return kit_id;
  }

  it.skipIf(peerMissing('rabbitmq-server', 'epmd'))(
    'that RabbitMQ accepts and never delivers on is reported, and replaced by a plain one',
    async () => {
      const rabbit = await startRabbitmq();
      ends.push(async () => rabbit.stop());
      const url = `mqtt://127.0.0.1:${rabbit.port}`;
      const stored = new Set<string>();
      const { link, reports } = startReplica(url, rabbit, { stored, hasOnlineKits: false });
      await eventually('it is connected', () => link.isUp, patience_ms);
      await playKit(url, rabbit, 100);
      await eventually('the fault is reported', () => reports.length > 0, patience_ms);
      expect(reports).toEqual([texts.share_silent('kits')]);
      const before = stored.size;
      await eventually('messages are stored', () => stored.size > before + 20, patience_ms);
    },
    3 * patience_ms,
  );

  it.skipIf(peerMissing('mosquitto'))(
    'that delivers is not reported, also at a replica whose messages all go to another one',
    async () => {
      const broker = await startMosquitto();
      ends.push(async () => broker.stop());
      const stored = new Set<string>();
      const login = { username: 'cloud', password: undefined };
      const replicas = [1, 2].map(() => startReplica(broker.url, login, { stored, hasOnlineKits: true }));
      await eventually('both are connected', () => replicas.every(({ link }) => link.isUp), patience_ms);
      // Slower than the replicas look.
      await playKit(broker.url, login, 2_500);
      const reports = (): readonly (string | undefined)[] => replicas.flatMap((each) => each.reports);
      await eventually('some have looked', () => reports().length >= 2, patience_ms);
      expect(reports().every((each) => each === undefined)).toBe(true);
    },
    2 * patience_ms,
  );

  it.skipIf(peerMissing('mosquitto'))(
    'of a user who may read nothing is reported while kits are online',
    async () => {
      const dir = await testDirectory();
      const acl = join(dir, 'acl');
      await writeFile(acl, 'user kit\ntopic write k1/#\nuser cloud\ntopic write k1/+/down/#\n', {
        mode: 0o644,
      });
      const broker = await startMosquitto({ conf: ['allow_anonymous true', `acl_file ${acl}`] });
      ends.push(async () => broker.stop());
      const stored = new Set<string>();
      const login = { username: 'cloud', password: undefined };
      const { reports } = startReplica(broker.url, login, { stored, hasOnlineKits: true });
      await playKit(broker.url, { username: 'kit', password: undefined }, 100);
      await eventually('the fault is reported', () => reports.length > 0, patience_ms);
      expect(reports[0]).toContain('may read k1/+/up/#');
      expect(stored.size).toBe(0);
      for (const end of ends.splice(0).toReversed()) await end();
    },
    2 * patience_ms,
  );
});
