/** Brokers that offer less than the kit needs, or say strange things: told in words, and got by as far as possible. */
import { describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { kitAt } from '../../support/brokers/kit-scene.ts';
import { framed, property, type Script, suback, uint16 } from '../../support/brokers/scripted-broker.ts';
import { texts } from '../../../src/kit/uplink/texts.ts';

const retain_available = 0x25;
const maximum_qos = 0x24;
const receive_maximum = 0x21;
const maximum_packet_size = 0x27;
/** In the flags of CONNECT, behind `MQTT` and the version. */
const will_retain = 0x20;

function announcing(...properties: readonly Buffer[]): Script {
  return { onConnect: (peer) => peer.connack(0, Buffer.concat(properties)) };
}

describe('a broker', () => {
  it('without retained messages gets none, not even as a will, and the kit reports it', async () => {
    const script: Script = {
      onConnect: (peer) => {
        if ((peer.connect.readUInt8(7) & will_retain) > 0) peer.connack(0x9a);
        else peer.connack(0, property(retain_available, Buffer.from([0])));
      },
    };
    const { broker, kit } = await kitAt(script);
    await eventually('connected', () => kit.uplink.online);
    kit.send('presence', 0, { name: 'falcon' });
    await eventually('delivered', () => kit.outbox.ledger().delivered === 1);
    expect(broker.published.map(({ retain }) => retain)).toEqual([false, false]);
    expect(kit.uplink.problems().join()).toMatch(/does not keep retained messages/);
  });

  it('with QoS 0 only is sent nothing, and the kit reports the reason', async () => {
    const { broker, kit } = await kitAt(announcing(property(maximum_qos, Buffer.from([0]))));
    await eventually('it is told', () => kit.uplink.problems().length > 0);
    kit.send('alarm', 0, { detected: true });
    await eventually('it is tried again', () => kit.uplink.status().attempts > 2);
    expect(kit.uplink.problems().join()).toMatch(/supports QoS 0 only/);
    expect(broker.published).toEqual([]);
    expect(kit.uplink.online).toBe(false);
  });

  it('with Receive Maximum 0 is sent one message at a time', async () => {
    const { kit, lines } = await kitAt(announcing(property(receive_maximum, uint16(0))));
    for (let n = 0; n < 5; n++) kit.send('alarm', n, { n });
    await eventually('delivered', () => kit.outbox.ledger().delivered === 5);
    expect(kit.uplink.problems().join()).toMatch(/Receive Maximum 0/);
    expect(lines.filter((line) => line.includes('Receive Maximum 0'))).toHaveLength(1);
  });

  it(
    'is never sent more than its Receive Maximum, also when the state or the farewell is due meanwhile',
    { tags: 'long' },
    async () => {
      const unanswered: number[] = [];
      let isHolding = false;
      let most = 0;
      const script: Script = {
        onConnect: (peer) => peer.connack(0, property(receive_maximum, uint16(1))),
        onPublish: ({ packet_id }, peer) => {
          unanswered.push(packet_id);
          most = Math.max(most, unanswered.length);
          if (!isHolding) peer.puback(unanswered.shift() ?? 0);
        },
      };
      const { broker, kit } = await kitAt(script);
      await eventually('connected', () => kit.uplink.online);
      isHolding = true;
      kit.send('alarm', 0, { n: 0 });
      await eventually('an alarm is in flight', () => unanswered.length === 1);
      const stopped = kit.stop();
      await stopped;
      expect(most).toBe(1);
      // Its will says that it is gone.
      expect(broker.published.at(-1)?.topic).not.toContain('state');
    },
  );

  it('with a packet limit below the presence stays connected without it, and the kit reports it', async () => {
    const limit = Buffer.alloc(4);
    limit.writeUInt32BE(100);
    const { broker, kit } = await kitAt(announcing(property(maximum_packet_size, limit)));
    await eventually('connected', () => kit.uplink.online);
    const told = /refuses \S+up\/state \(packet too large \(0x95\)\)/;
    await eventually('it is told', () => told.test(kit.uplink.problems().join()));
    expect(broker.published).toEqual([]);
    expect(broker.peers).toHaveLength(1);
  });

  it('is served also when it refuses a subscription, and the kit reports what does not arrive', async () => {
    const script: Script = {
      onSubscribe: (id, filters, peer) =>
        peer.write(
          suback(
            id,
            filters.map((filter) => (filter.includes('task') ? 0x87 : 1)),
            peer.version,
          ),
        ),
    };
    const { kit } = await kitAt(script);
    kit.send('alarm', 0, { detected: true });
    await eventually('delivered', () => kit.outbox.ledger().delivered === 1);
    expect(kit.uplink.problems().join()).toMatch(
      /subscription to \S+down\/task\/# \(not authorized \(0x87\)\)/,
    );
  });

  it('is named with its reason text when it gives the session to another client', async () => {
    const { broker, kit, lines } = await kitAt({
      onSubscribed: (_, peer) => peer.disconnect(0x8e, 'logged in elsewhere'),
    });
    await eventually('it is told', () => kit.uplink.problems().length > 0);
    broker.follow({});
    expect(kit.uplink.problems().join()).toMatch(/another client uses this kit_id/);
    expect(kit.uplink.status().last_error).toMatch(/\(0x8e\): "logged in elsewhere"/);
    expect(lines.join()).toContain(texts.another_client);
  });

  it('may send a DISCONNECT of two bytes', async () => {
    const { kit } = await kitAt({ onSubscribed: (_, peer) => peer.write(framed(0xe0)) });
    await eventually('it ended', () => kit.uplink.status().last_error !== null);
    expect(kit.uplink.status().last_error).toMatch(/normal disconnection \(0x00\)/);
  });
});
