/** The link of the service to its broker, against a broker that also does what no real one may. */
import { describe, expect, it } from 'vitest';
import type { CloudAck } from '../../../../src/contract/tasks.ts';
import { upFilter } from '../../../../src/contract/topics.ts';
import { BrokerLink, type BrokerLinkParts } from '../../../../src/cloud/broker/broker-link.ts';
import { kit_id } from '../../../support/contract-samples.ts';
import { eventually } from '../../../support/eventually.ts';
import {
  type Script,
  framed,
  property,
  type ScriptedBroker,
  startScriptedBroker,
  suback,
} from '../../../support/brokers/scripted-broker.ts';
import { brokerOptions } from '../../../support/brokers/broker-options.ts';

const refused = 0x87;
const order = {
  kit_id,
  task_id: '00000000-0000-4000-8000-000000000002',
  asset_id: '00000000-0000-4000-8000-000000000001',
  command_name: 'reboot',
  payload: {},
  requested_by: '00000000-0000-4000-8000-000000000003',
  requested_by_name: 'operator',
  created_ms: 0,
  due_ms: 15_000,
} as const;

interface Scene {
  readonly broker: ScriptedBroker;
  readonly link: BrokerLink;
  readonly logged: readonly string[];
}

async function withLink(
  script: Script,
  changes: Partial<BrokerLinkParts>,
  play: (scene: Scene) => Promise<void>,
): Promise<void> {
  const broker = await startScriptedBroker(script);
  const logged: string[] = [];
  const write = (_: object, sentence: string): number => logged.push(sentence);
  const link = new BrokerLink({
    broker: brokerOptions(broker.url, { username: 'cloud', connect_timeout_ms: 500 }),
    client_id: 'kit-service',
    share: undefined,
    take: async () => undefined,
    log: { info: write, warn: write, error: write },
    ...changes,
  });
  const end = new AbortController();
  const running = link.run(end.signal);
  try {
    await play({ broker, link, logged });
  } finally {
    end.abort();
    await running;
    await broker.close();
  }
}

describe('BrokerLink', () => {
  it('closes a connection whose subscription was refused before it opens the next one', async () => {
    let open = 0;
    let open_max = 0;
    const script: Script = {
      onConnect: (peer) => {
        open += 1;
        open_max = Math.max(open_max, open);
        peer.onClose(() => (open -= 1));
        peer.connack();
      },
      onSubscribe: (packet_id, _, peer) => peer.write(suback(packet_id, [refused], peer.version)),
    };
    await withLink(script, {}, async ({ broker, link }) => {
      await eventually('several attempts were made', () => broker.peers.length >= 3);
      expect(open_max).toBe(1);
      expect(link.isUp).toBe(false);
    });
  });

  it('gives up a connection on which the broker does not answer the subscription', async () => {
    const script: Script = { onSubscribe: () => undefined };
    await withLink(script, {}, async ({ broker }) => {
      await eventually('a second attempt was made', () => broker.peers.length >= 2);
    });
  });

  it('sends tasks while a broker that has kept the session answers the subscription behind all that it has queued', async () => {
    const session_present = framed(0x20, Buffer.from([1, 0, 0]));
    let answer: (() => void) | undefined;
    const script: Script = {
      onConnect: (peer) => peer.write(session_present),
      onSubscribe: (packet_id, _, peer) => (answer = () => peer.suback(packet_id, [1])),
    };
    await withLink(script, {}, async ({ broker, link, logged }) => {
      await eventually('it has subscribed', () => answer !== undefined);
      await link.dispatch(order);
      expect(broker.published).toHaveLength(1);
      expect({ isUp: link.isUp, logged }).toEqual({ isUp: true, logged: [] });
      answer?.();
      await eventually('it is connected', () => logged.length === 1);
    });
  });

  it.each([undefined, 'replicas'])(
    'counts a task as perhaps delivered when the connection ends before its PUBACK (share: %s)',
    async (share) => {
      const script: Script = { onPublish: (_, peer) => peer.hangUp() };
      await withLink(script, { share }, async ({ broker, link }) => {
        await eventually('it is connected', () => link.isUp);
        await expect(link.dispatch(order)).resolves.toBeUndefined();
        expect(broker.published).toHaveLength(1);
      });
    },
  );

  it('reports a task as not delivered when the broker refuses it or no kit is connected', async () => {
    const codes = [refused, 0x10];
    const script: Script = { onPublish: ({ packet_id }, peer) => peer.puback(packet_id, codes.shift()) };
    await withLink(script, {}, async ({ link }) => {
      await eventually('it is connected', () => link.isUp);
      await expect(link.dispatch(order)).rejects.toThrow(/not authorized/iu);
      await expect(link.dispatch(order)).rejects.toThrow(/the kit is not connected to the broker/u);
    });
  });

  it('refuses an acknowledgement that is larger than the broker accepts, and sends nothing', async () => {
    const limit = Buffer.from([0x27, 0, 0, 0x04, 0]);
    const script: Script = { onConnect: (peer) => peer.connack(0, limit) };
    await withLink(script, {}, async ({ broker, link }) => {
      await eventually('it is connected', () => link.isUp);
      const ranges = Array.from({ length: 1_000 }, (_, n): [number, number] => [2 * n, 2 * n]);
      const refused_ack = link.acknowledge(kit_id, { epoch: 17, ranges }, true);
      await expect(refused_ack).rejects.toMatchObject({ name: 'MessageRefused', isTooLarge: true });
      await link.acknowledge(kit_id, { epoch: 17, ranges: ranges.slice(0, 10) }, true);
      expect(broker.published).toHaveLength(1);
    });
  });

  it('keeps a connection whose broker takes few messages at once, and answers late', async () => {
    const two_at_once = property(0x21, Buffer.from([0, 2]));
    const unanswered: (() => void)[] = [];
    let isLate = true;
    const script: Script = {
      onConnect: (peer) => peer.connack(0, two_at_once),
      onPublish: ({ packet_id }, peer) => {
        if (isLate) unanswered.push(() => peer.puback(packet_id));
        else peer.puback(packet_id);
      },
    };
    await withLink(script, {}, async ({ broker, link }) => {
      await eventually('it is connected', () => link.isUp);
      const ack = { epoch: 17, ranges: [[1, 2]] } satisfies CloudAck;
      const all = Promise.all(Array.from({ length: 300 }, async () => link.acknowledge(kit_id, ack, false)));
      await eventually('as many came as it takes', () => unanswered.length === 2);
      isLate = false;
      for (const answer of unanswered) answer();
      await all;
      expect({ published: broker.published.length, peers: broker.peers.length }).toEqual({
        published: 300,
        peers: 1,
      });
    });
  });

  it('subscribes to everything that kits publish and keeps the live flag of messages', async () => {
    const filters: string[] = [];
    const script: Script = { onSubscribed: (some) => filters.push(...some) };
    await withLink(script, {}, async ({ link }) => {
      await eventually('it is connected', () => link.isUp);
      expect(filters).toEqual([upFilter]);
    });
  });
});
