/** The uplink with several brokers, and with brokers that send it on: what each of them gets, and what the books say. */
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Position } from '../../../../src/contract/envelope.ts';
import { downTopic } from '../../../../src/contract/topics.ts';
import { first_again_ms, next_after_ms } from '../../../../src/kit/uplink/broker-choice.ts';
import {
  framed,
  type Peer,
  property,
  type Script,
  type ScriptedBroker,
  startScriptedBroker,
  string,
} from '../../../support/brokers/scripted-broker.ts';
import { eventually } from '../../../support/eventually.ts';
import { test_kit } from '../../../support/gps.ts';
import { type Connector, startConnector } from '../../../support/kit/connector.ts';
import { makeDirectory } from '../../../support/temporary.ts';

/** MQTT 5 section 2.2.2.2. */
const server_reference_id = 0x1c;
const unavailable: Script = { onConnect: (peer) => peer.connack(0x88) };
/** It kept a session of the kit, which knows nothing of what other brokers had meanwhile. */
const withSession: Script = { onConnect: (peer) => peer.write(framed(0x20, Buffer.from([1, 0, 0]))) };

interface Scene {
  readonly first: ScriptedBroker;
  readonly second: ScriptedBroker;
  readonly kit: Connector;
  /** The clock of the uplink; pauses between attempts stay short. */
  readonly pass: (ms: number) => void;
}

async function scene(first_script: Script, { isListed = true } = {}): Promise<Scene> {
  const [first, second] = [await startScriptedBroker(first_script), await startScriptedBroker()];
  let passed_ms = 0;
  const kit = await startConnector({
    file: join(await makeDirectory(), 'buffer.db'),
    url: first.url,
    other_urls: isListed ? [second.url] : [],
    protocol: '5',
    now: () => performance.now() + passed_ms,
    retry_ms: 100,
  });
  onTestFinished(async () => {
    await kit.stop();
    await first.close();
    await second.close();
  });
  return { first, second, kit, pass: (ms) => void (passed_ms += ms) };
}

const events = (broker: ScriptedBroker): readonly string[] =>
  broker.published.filter(({ topic }) => topic.includes('/event/')).map(({ payload }) => payload);
const isBalanced = ({ outbox }: Connector): boolean => outbox.ledger().balanced;

/** Of a retained message that another client published. */
function sendAck(peer: Peer | undefined, { epoch, seq }: Position): void {
  peer?.publish(downTopic(test_kit, { kind: 'ack' }), JSON.stringify({ epoch, ranges: [[seq, seq]] }));
}

describe('a kit with several brokers', () => {
  it(
    'uses the next one after a minute, and the first again once it accepts, without a loss',
    { tags: 'long' },
    async () => {
      const { first, second, kit, pass } = await scene(unavailable);
      await eventually('refused', () => first.peers.length > 0);
      expect(second.peers).toEqual([]);
      pass(next_after_ms);
      await eventually('served by the second', () => kit.uplink.online);
      expect(kit.uplink.way).toBe(second.url);
      expect(kit.uplink.problems()).toEqual([expect.stringContaining('server unavailable')]);
      const position = kit.send('alarm', 1, { n: 1 });
      await eventually('delivered', () => events(second).length === 1);
      sendAck(second.peers[0], position);
      kit.send('alarm', 2, { n: 2 });
      await eventually('delivered', () => events(second).length === 2);

      const tries = first.peers.length;
      pass(first_again_ms);
      await eventually('the first was tried', () => first.peers.length > tries);
      expect(second.peers).toHaveLength(1);
      first.follow(withSession);
      // A session of its own does not put the first off.
      second.peers[0]?.hangUp();
      await eventually('served by the second again', () => second.peers.length === 2 && kit.uplink.online);
      pass(first_again_ms);
      await eventually('served by the first', () => kit.uplink.way === first.url && kit.uplink.online);
      // The cloud has acknowledged only the first of the two, so the other goes to the broker that never had it.
      await eventually('sent again', () => events(first).length > 0);
      expect(new Set(events(first).map((payload) => /"n":\d/u.exec(payload)?.[0]))).toEqual(
        new Set(['"n":2']),
      );
      expect(second.published.at(-1)?.payload).toContain('"online":false');
      expect(second.peers).toHaveLength(2);
      expect(kit.uplink.problems()).toEqual([]);
      expect(isBalanced(kit)).toBe(true);
    },
  );

  it('is not trapped by a first one that accepts each connection and ends it', async () => {
    const { first, second, kit, pass } = await scene(unavailable);
    first.follow({
      onConnect(peer) {
        pass(10_000);
        peer.connack();
      },
      onPublish({ packet_id, topic }, peer) {
        if (topic.endsWith('/up/state')) peer.puback(packet_id);
        peer.hangUp();
      },
    });
    kit.send('alarm', 1, { n: 1 });
    await eventually('delivered', () => events(second).length === 1);
    expect(first.peers.length).toBeGreaterThanOrEqual(next_after_ms / 10_000);
    expect(isBalanced(kit)).toBe(true);
  });
});

describe('a kit that a broker sends on', () => {
  const named = ({ port }: ScriptedBroker): Buffer =>
    property(server_reference_id, string(`localhost:${port}`));

  it('in its CONNACK is served there, and begins with the first again', async () => {
    const { first, second, kit } = await scene(unavailable, { isListed: false });
    first.follow({ onConnect: (peer) => peer.connack(0x9c, named(second)) });
    kit.send('alarm', 1, { n: 1 });
    await eventually('delivered', () => events(second).length === 1);
    expect(kit.uplink.problems()).toEqual([]);
    first.follow({});
    second.peers[0]?.hangUp();
    await eventually('served by the first', () => kit.uplink.online && kit.uplink.way === first.url);
  });

  it('by a DISCONNECT for good stays there', async () => {
    const { first, second, kit } = await scene({}, { isListed: false });
    await eventually('connected', () => kit.uplink.online);
    const properties = named(second);
    first.peers[0]?.write(framed(0xe0, Buffer.from([0x9d, properties.length]), properties));
    await eventually('served there', () => second.peers.length === 1);
    second.peers[0]?.hangUp();
    await eventually('served there again', () => second.peers.length === 2 && kit.uplink.online);
    expect(first.peers).toHaveLength(1);
    expect(kit.uplink.problems()).toEqual([expect.stringContaining('moved for good')]);
  });
});
