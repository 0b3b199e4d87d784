/** How much a running daemon logs, changed from the command line for a time. */
import { describe, expect, it } from 'vitest';
import type { LogLevels } from '../../src/local/api.ts';
import { eventually } from '../support/eventually.ts';
import { type Kit, withKit } from '../support/kit.ts';

async function withDaemon(play: (kit: Kit, log: () => readonly string[]) => Promise<void>): Promise<void> {
  await withKit({ rehearsed: false }, async (kit) => {
    await kit.configure({
      broker: { url: 'mqtt://127.0.0.1:1' },
      log: { level: 'warn', drivers: { gateway: 'error' } },
      drivers: [kit.gateway],
    });
    // At this level the line that says that it runs is not written.
    const daemon = kit.launch();
    await eventually('it answers', async () => (await kit.run('status')).code === 0);
    await play(kit, () => daemon.log().map(({ level, msg }) => `${level} ${msg}`));
  });
}

async function levels(kit: Kit, ...words: readonly string[]): Promise<LogLevels['levels']> {
  const { code, stdout, stderr } = await kit.run('log-level', ...words, '--json');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return (JSON.parse(stdout) as LogLevels).levels;
}

describe('kit-connector log-level', () => {
  it('shows the levels, raises one for a time, after which it is again as configured', async () => {
    await withDaemon(async (kit, log) => {
      expect(await levels(kit)).toEqual([
        { name: null, level: 'warn', until: null },
        { name: 'gateway', level: 'error', until: null },
      ]);
      const asked_ms = Date.now();
      const [, gateway, uplink] = await levels(kit, 'uplink=debug', 'gateway=info', '--for', '2s');
      expect(gateway).toMatchObject({ name: 'gateway', level: 'info' });
      expect(Date.parse(uplink?.until ?? '') - asked_ms).toBeGreaterThan(1_000);
      await eventually('a debug line', () => log().includes('debug the broker still does not take us'));
      await eventually('it is over', async () => (await levels(kit)).length === 2);
      expect(await levels(kit)).toEqual([
        { name: null, level: 'warn', until: null },
        { name: 'gateway', level: 'error', until: null },
      ]);
      expect((await levels(kit, 'fatal', '--for', '1h'))[0]).toMatchObject({ name: null, level: 'fatal' });
      expect((await levels(kit, 'reset'))[0]).toEqual({ name: null, level: 'warn', until: null });
    });
  });

  it('refuses a name that nobody has, a level that is none and a time that is too long, and says what to write', async () => {
    await withDaemon(async (kit) => {
      const refusals = [
        [['mavlnik=debug'], /nothing here is called "mavlnik"; drivers and parts are gateway, hub, media/],
        [['gateway=loud'], /"gateway=loud" is no setting; write a level \(debug, info/],
        [['=debug'], /"=debug" is no setting/],
        [['gateway=debug', '--for', '25h'], /"25h" is no time up to 24h; write 90s, 10m or 2h/],
        [['gateway=debug', '--for', 'ever'], /"ever" is no time up to 24h/],
      ] as const;
      for (const [words, refusal] of refusals) {
        const { code, stderr } = await kit.run('log-level', ...words);
        expect(stderr).toMatch(refusal);
        expect(code).not.toBe(0);
      }
      const { stdout } = await kit.run('log-level', 'gateway=debug');
      expect(stdout).toMatch(
        /^default {2}warn {3}as configured\ngateway {2}debug {2}until \d\d:\d\d:\d\d\n$/,
      );
    });
  });
});
