/** How much a running daemon logs, changed from the command line for a time. */
import { describe, expect, it } from 'vitest';
import type { LogLevelChange, LogLevels } from '../../../src/kit/local/api.ts';
import { localClient } from '../../../src/kit/local/client.ts';
import { isAnswered } from '../../../src/kit/local/server.ts';
import { eventually } from '../../support/eventually.ts';
import { type Kit, withKit } from '../../support/kit/kit.ts';

async function withDaemon(play: (kit: Kit, log: () => readonly string[]) => Promise<void>): Promise<void> {
  await withKit({ rehearsed: false }, async (kit) => {
    await kit.configure({
      broker: { url: 'mqtt://127.0.0.1:1' },
      log: { level: 'warn', drivers: { gateway: 'error' } },
      drivers: [kit.gateway],
    });
    // At this level the line that says that it runs is not written.
    const daemon = kit.launch();
    await eventually('it answers', async () => isAnswered(kit.socket));
    await play(kit, () => daemon.log().map(({ level, msg }) => `${level} ${msg}`));
  });
}

const configured = [
  { name: null, level: 'warn', until: null },
  { name: 'gateway', level: 'error', until: null },
];

describe('kit-connector log-level', () => {
  it('raises a level for a time, after which it is again as configured', async () => {
    await withDaemon(async (kit, log) => {
      const daemon = localClient(kit.socket, new AbortController().signal);
      const levels = async (): Promise<LogLevels['levels']> => (await daemon.logLevels()).levels;
      const change = async (name: string | null, level: LogLevelChange['level'], for_s: number) =>
        (await daemon.changeLogLevels({ changes: [{ name, level }], for_s })).levels;
      expect(await levels()).toEqual(configured);
      const asked_ms = Date.now();
      const [, , uplink] = await change('uplink', 'debug', 600);
      expect(uplink).toMatchObject({ name: 'uplink', level: 'debug' });
      expect(Date.parse(uplink?.until ?? '') - asked_ms).toBeGreaterThanOrEqual(600_000);
      await eventually('a debug line', () => log().includes('debug broker still not connected'));
      expect(await change('uplink', null, 1)).toEqual(configured);

      expect((await change(null, 'info', 0.5))[0]).toMatchObject({ name: null, level: 'info' });
      await eventually('it is over', async () => (await levels())[0]?.until === null);
      expect(await levels()).toEqual(configured);
    });
  });
});
