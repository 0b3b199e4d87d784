/** With MQTT 3.1.1 neither the limit of a broker nor a refusal is known: acknowledgements are small from the start. */
import { describe, expect, it } from 'vitest';
import { cloudAck } from '../../../src/contract/tasks.ts';
import { downTopic } from '../../../src/contract/topics.ts';
import { openSession } from '../../../src/mqtt/session.ts';
import { Acks } from '../../../src/cloud/broker/acks.ts';
import { BrokerLink } from '../../../src/cloud/broker/broker-link.ts';
import { startMosquitto } from '../../support/brokers/broker.ts';
import { kit_id } from '../../support/contract-samples.ts';
import { eventually } from '../../support/eventually.ts';
import { peerMissing } from '../../support/peers.ts';
import { brokerOptions } from '../../support/brokers/broker-options.ts';

const limit_bytes = 4_000;
/** The largest numbers, each with a gap behind it. */
const last_seq = 2 ** 33 - 2;
const ranges_stored = Array.from({ length: 1_500 }, (_, n): [number, number] => {
  const seq = last_seq - 2 * (1_500 - n);
  return [seq, seq];
});
const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined };

describe.skipIf(peerMissing('mosquitto'))('acknowledgements of the service', () => {
  it.each([
    ['drops what is too large', `message_size_limit ${limit_bytes}`],
    ['closes the connection on what is too large', `max_packet_size ${limit_bytes}`],
  ])(
    'all reach the kit over MQTT 3.1.1 where the broker %s',
    async (_, conf) => {
      const end = new AbortController();
      const { signal } = end;
      const broker = await startMosquitto({ conf: [conf], signal });
      const options = brokerOptions(broker.url, { protocol: '3.1.1' });
      const arrived = new Set<number>();
      const kit = await openSession(
        {
          broker: options,
          client_id: 'kit',
          protocol: '3.1.1',
          session_expiry_s: 0,
          receive_maximum: 100,
          packet_bytes_max: 300_000,
          onMessage: async ({ payload }) => {
            const { ranges } = cloudAck.parse(JSON.parse(payload.toString()));
            for (const [seq] of ranges) arrived.add(seq);
            return true;
          },
          onOversize: () => undefined,
        },
        signal,
      );
      await kit.subscribe([downTopic(kit_id, { kind: 'ack' })], { rap: false });
      const link = new BrokerLink({
        broker: options,
        client_id: 'service',
        share: undefined,
        take: async () => undefined,
        log: quiet,
      });
      const running = link.run(signal);
      try {
        await eventually('the service is connected', () => link.isUp);
        const acks = new Acks({
          store: { newestEpoch: async () => 0 },
          log: quiet,
          send: async (kit_id, ack, isNewest) => link.acknowledge(kit_id, ack, isNewest),
          reportsRefusals: () => link.reports_refusals,
          signal,
        });
        acks.note([{ kit_id, ack: { epoch: 17, ranges: ranges_stored } }]);
        await eventually('every range has arrived', () => arrived.size === ranges_stored.length);
        expect(link.isUp).toBe(true);
      } finally {
        kit.destroy('the test is over');
        end.abort();
        await running;
        await broker.stop();
      }
    },
    30_000,
  );
});
