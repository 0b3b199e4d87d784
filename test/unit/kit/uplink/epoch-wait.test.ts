/** A start that cannot be sure of its epoch connects only when no other start can have used it. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../src/kit/uplink/texts.ts';
import { startScriptedBroker } from '../../../support/brokers/scripted-broker.ts';
import { eventually } from '../../../support/eventually.ts';
import { startConnector } from '../../../support/kit/connector.ts';
import { withDirectory } from '../../../support/temporary.ts';

const wait_ms = 400;

describe('Uplink', () => {
  it('does not connect before nothing of its epoch can be published twice', async () => {
    await withDirectory(async (dir) => {
      const connected_ms: number[] = [];
      const broker = await startScriptedBroker({
        onConnect: (peer) => {
          connected_ms.push(performance.now());
          peer.connack();
        },
      });
      const begin_ms = performance.now();
      const logged: string[] = [];
      const connector = await startConnector({
        file: join(dir, 'buffer.db'),
        url: broker.url,
        wait_ms,
        log: (sentence) => logged.push(sentence),
      });
      await eventually('it is connected', () => connected_ms.length > 0);
      expect((connected_ms[0] ?? 0) - begin_ms).toBeGreaterThanOrEqual(wait_ms);
      expect(logged).toContain(texts.epoch_unsure);
      await connector.stop();
      await broker.close();
    });
  });

  it('stops while it waits', async () => {
    await withDirectory(async (dir) => {
      const broker = await startScriptedBroker();
      const connector = await startConnector({
        file: join(dir, 'buffer.db'),
        url: broker.url,
        wait_ms: 3_600_000,
      });
      await connector.stop();
      expect(broker.peers).toEqual([]);
      await broker.close();
    });
  });
});
