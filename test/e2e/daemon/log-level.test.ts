/** How much a running daemon logs, changed from the command line for a time. */
import { describe, expect, it } from 'vitest';
import type { LogLevelChange, LogLevels } from '../../../src/kit/local/api.ts';
import { localClient } from '../../../src/kit/local/client.ts';
import { isAnswered } from '../../../src/kit/local/server.ts';
import { exit } from '../../../src/cli/terminal/shell.ts';
import { runProgram } from '../../../src/cli/program.ts';
import { recordedShell } from '../../unit/cli/shell-of-test.ts';
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

  it('refuses an unknown name, an invalid level and a time that is too long, with what to write', async () => {
    await withDaemon(async (kit) => {
      const refusals = [
        [['mavlnik=debug'], /nothing here is called "mavlnik"; drivers and parts are gateway, hub, media/],
        [['gateway=loud'], /"gateway=loud" is not a valid setting; write a level \(debug, info/],
        [['=debug'], /"=debug" is not a valid setting/],
        [
          ['gateway=debug', '--for', '25h'],
          /"25h" is not a duration up to 24h; write it like 90s, 10m or 2h/,
        ],
        [['gateway=debug', '--for', 'ever'], /"ever" is not a duration up to 24h/],
      ] as const;
      for (const [words, refusal] of refusals) {
        const typed = recordedShell();
        const code = await runProgram(['log-level', ...words, '--socket', kit.socket], typed);
        expect(typed.stderr()).toMatch(refusal);
        expect([exit.failed, exit.usage]).toContain(code);
      }
      const { stdout } = await kit.run('log-level', 'gateway=debug');
      expect(stdout).toMatch(
        /^default {2}warn {3}as configured\ngateway {2}debug {2}until (?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d\n$/,
      );
    });
  });
});
