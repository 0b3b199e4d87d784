/** A broker that takes the connection and refuses every message: a quota, a full disk, a plan that has run out. */
import { describe, expect, it } from 'vitest';
import { startConnector } from '../../support/kit/connector.ts';
import { eventually } from '../../support/eventually.ts';
import { startScriptedBroker } from '../../support/brokers/scripted-broker.ts';
import { withDirectory } from '../../support/temporary.ts';

describe.concurrent('a broker that refuses everything', () => {
  it.each([0x80, 0x83, 0x97])(
    'with code %i is named once for each kind, and nothing is lost',
    { tags: 'long' },
    async (code) => {
      await withDirectory(async (dir) => {
        const refusing = {
          onPublish: (
            { topic, packet_id }: { topic: string; packet_id: number },
            peer: { puback(id: number, code?: number): void },
          ) => peer.puback(packet_id, topic.endsWith('/state') ? 0 : code),
        };
        const broker = await startScriptedBroker(refusing);
        const lines: string[] = [];
        const kit = await startConnector({
          file: `${dir}/b.db`,
          url: broker.url,
          batch_rows: 1,
          log: (line) => lines.push(line),
        });
        try {
          for (let n = 0; n < 20; n++) kit.send('alarm', n, { n });
          await eventually('it is named', () => kit.outbox.dispatch.refusedKinds().length > 0);
          expect(kit.outbox.dispatch.refusedKinds()).toMatchObject([{ kind: 'event', code }]);
          expect(lines.filter((line) => line.startsWith('broker refused messages'))).toHaveLength(1);
          expect(kit.outbox.ledger()).toMatchObject({ buffered: 20, quarantined: 0, dropped: {} });
          broker.follow({});
          await eventually('all are delivered', () => kit.outbox.ledger().delivered === 20);
          // What takes nothing shows no limit.
          expect(kit.uplink.problems().join()).not.toContain('messages_per_s_max');
        } finally {
          await kit.stop();
          await broker.close();
        }
      });
    },
  );
});
