/** A broker that goes away while messages are in flight: the pauses between attempts grow, whatever was in flight. */
import { describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { kitAt } from '../../support/brokers/kit-scene.ts';

/** The spans of the connector of the tests: 0.2, 0.4, 0.8, 1.6, 2, 2 s. */
const attempts_max = 30;

describe('a broker that goes away while a message is in flight', () => {
  it('is not asked again and again without growing pauses', async () => {
    const { broker, kit } = await kitAt({
      onPublish: ({ topic, packet_id }, peer) => {
        if (topic.endsWith('/state')) peer.puback(packet_id);
      },
    });
    await eventually('connected', () => kit.uplink.online);
    kit.send('alarm', 0, { detected: true });
    await eventually('it is in flight', () => kit.uplink.status().in_flight === 1);
    await broker.close();
    // Only of the fourth pause on can so much be left.
    await eventually('the pauses grow', () => (kit.uplink.status().next_try_in_ms ?? 0) > 800);
    expect(kit.uplink.status().attempts).toBeLessThan(attempts_max);
  });
});
