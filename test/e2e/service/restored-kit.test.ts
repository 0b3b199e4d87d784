/** A kit whose state was put back from an old copy, in an epoch that it used before, while its session at the broker lasts. */
import { describe, expect, it } from 'vitest';
import { writeEnvelope } from '../../../src/contract/envelope.ts';
import type { JsonObject } from '../../../src/contract/json.ts';
import { connection_lost } from '../../../src/contract/presence.ts';
import { cloudAck } from '../../../src/contract/tasks.ts';
import { channels, downTopic, upTopic } from '../../../src/contract/topics.ts';
import { openSession } from '../../../src/mqtt/session.ts';
import { readMessage } from '../../../src/cloud/read-message.ts';
import { pageOnDemand } from '../../../src/cloud/http/page/page-files.ts';
import { startStandalone } from '../../../src/cloud/standalone.ts';
import { openSqlite } from '../../../src/cloud/sql/sqlite.ts';
import { sqlStore, type Store } from '../../../src/cloud/store/sql-store.ts';
import { startMosquitto } from '../../support/brokers/broker.ts';
import { brokerOptions } from '../../support/brokers/broker-options.ts';
import { kit_id, samples } from '../../support/contract-samples.ts';
import { eventually } from '../../support/eventually.ts';
import { peerMissing } from '../../support/peers.ts';
import { recordingLog } from '../../support/recording-log.ts';

/** Both runs of the kit. The earlier one had eight connections, and the numbers of another block. */
const epoch = 7;
const earlier = { seq: 9_000_000, death: 80_000_000 };
const restored = { seq: 5_000_000, birth: 1 };

const state = (online: boolean, reason: string | null): JsonObject => ({
  ...samples['kitState'],
  online,
  reason,
});
const written = (channel: string, seq: number, data: JsonObject) => ({
  topic: upTopic(kit_id, channel),
  payload: writeEnvelope({ epoch, seq, time_ms: Date.now() }, JSON.stringify(data)),
});

/** What the service has of the earlier run. */
async function storeWithEarlierRun(): Promise<Store> {
  const store = sqlStore(openSqlite(':memory:'));
  const said = [
    written(channels.telemetry, earlier.seq, { battery: 50 }),
    written(channels.state, earlier.death, state(false, connection_lost)),
  ];
  for (const { topic, payload } of said) {
    const reception = readMessage(topic, Buffer.from(payload));
    if (reception) await store.commit([reception], Date.now());
  }
  return store;
}

describe.skipIf(peerMissing('mosquitto'))('A kit with an old copy of its state', () => {
  it('that seems to be offline learns the numbers of its earlier run, so that it leaves the epoch', async () => {
    const end = new AbortController();
    const broker = await startMosquitto({ signal: end.signal });
    const store = await storeWithEarlierRun();
    const acked: (readonly [number, number])[] = [];
    const service = await startStandalone({
      store,
      broker: brokerOptions(broker.url),
      client_id: 'cloud',
      listen: { host: '127.0.0.1', port: 0 },
      hosts: [],
      media_origins: [],
      limits: { reads_per_s: 1_000, changes_per_s: 100, fixes_per_s: 100, map_per_s: 100 },
      page: pageOnDemand(),
      version: '0',
      log: recordingLog(),
    });
    const kit = await openSession(
      {
        broker: brokerOptions(broker.url),
        client_id: 'kit',
        protocol: '5',
        session_expiry_s: 0,
        receive_maximum: 100,
        packet_bytes_max: 300_000,
        onMessage: async ({ payload }) => {
          acked.push(...cloudAck.parse(JSON.parse(payload.toString())).ranges);
          return true;
        },
        onOversize: () => undefined,
      },
      end.signal,
    );
    const say = async (channel: string, seq: number, data: JsonObject): Promise<unknown> =>
      kit.publishAndWait({ ...written(channel, seq, data), retain: false });
    try {
      await kit.subscribe([downTopic(kit_id, { kind: 'ack' })], { rap: false });
      const isNamed = (seq: number): boolean => acked.some(([lo, hi]) => lo <= seq && seq <= hi);
      await eventually('its own number is acknowledged', async () => {
        await say(channels.state, restored.birth, state(true, null));
        await say(channels.telemetry, restored.seq, { battery: 40 });
        return isNamed(restored.seq);
      });
      expect((await store.kit(kit_id))?.state?.online).toBe(false);
      // A kit that thinks it is online says no birth again, and goes on with its telemetry.
      let seq = restored.seq;
      await eventually('those of the earlier run are named', async () => {
        seq += 1;
        await say(channels.telemetry, seq, { battery: 40 });
        return isNamed(earlier.seq);
      });
    } finally {
      kit.destroy('the test is over');
      await service.stop();
      end.abort();
      await broker.stop();
    }
  }, 60_000);
});
