/** How soon the uplink tries again. A kit on a link that flaps stayed away for up to a minute after each outage of seconds. */
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startScriptedBroker } from '../../../support/brokers/scripted-broker.ts';
import { eventually } from '../../../support/eventually.ts';
import { startConnector } from '../../../support/kit/connector.ts';
import { withDirectory } from '../../../support/temporary.ts';

describe('pauses between attempts', () => {
  it('begin again at the shortest after a connection that carried a message', async () => {
    await withDirectory(async (dir) => {
      const broker = await startScriptedBroker();
      onTestFinished(async () => broker.close());
      const file = join(dir, 'buffer.db');
      const retry_ms = 400;
      const kit = await startConnector({ file, url: broker.url, retry_ms, random: () => 1 });
      onTestFinished(async () => kit.stop());
      const waits: number[] = [];
      for (let n = 1; n <= 4; n += 1) {
        await eventually('connected', () => kit.uplink.online);
        const before = kit.acknowledged;
        kit.send('alarm', n, { n });
        await eventually('carried', () => kit.acknowledged > before);
        broker.peers.at(-1)?.hangUp();
        await eventually('waiting', () => {
          const { next_try_in_ms } = kit.uplink.status();
          if (next_try_in_ms !== null) waits.push(next_try_in_ms);
          return next_try_in_ms !== null;
        });
      }
      expect(waits.every((wait_ms) => wait_ms <= retry_ms)).toBe(true);
    });
  });
});
