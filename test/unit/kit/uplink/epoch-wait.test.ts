/** A start that cannot be sure of its epoch connects only when no other start can have used it. */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../src/kit/uplink/texts.ts';
import { kitAt } from '../../../support/brokers/kit-scene.ts';
import type { Peer } from '../../../support/brokers/scripted-broker.ts';
import { eventually } from '../../../support/eventually.ts';

const wait_ms = 400;

describe('Uplink', () => {
  it('does not connect before nothing of its epoch can be published twice', async () => {
    const connected_ms: number[] = [];
    const onConnect = (peer: Peer): void => {
      connected_ms.push(performance.now());
      peer.connack();
    };
    const begin_ms = performance.now();
    const { lines } = await kitAt({ onConnect }, { wait_ms });
    await eventually('it is connected', () => connected_ms.length > 0);
    expect((connected_ms[0] ?? 0) - begin_ms).toBeGreaterThanOrEqual(wait_ms);
    expect(lines.join()).toContain(texts.epoch_unsure);
  });

  it('stops while it waits', async () => {
    const { broker, kit } = await kitAt({}, { wait_ms: 3_600_000 });
    await kit.stop();
    expect(broker.peers).toEqual([]);
  });
});
