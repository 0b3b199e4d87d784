/** `status --watch`: drawn in place, cut to the terminal's size of that moment, and honest when the daemon is lost. */
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { runProgram } from '../../../src/cli/program.ts';
import { drawn } from '../../../src/cli/status.ts';
import { texts } from '../../../src/cli/texts.ts';
import type { Shell } from '../../../src/cli/terminal/shell.ts';
import { serveLocal } from '../../../src/kit/local/server.ts';
import { makeDirectory } from '../../support/temporary.ts';
import { fakeDaemon, statusOf } from '../kit/local/fake-daemon.ts';
import { recordedShell } from './shell-of-test.ts';

/** What a person sees of it. */
function seen(text: string): readonly string[] {
  return stripVTControlCharacters(text).split('\n');
}

test('lines are cut to the columns, colours not counted, and too many lines to the rows', () => {
  const red = '\u001B[31m12345\u001B[39m678';
  expect(drawn([red], { columns: 4 })).toBe('\u001B[H\u001B[31m123…\u001B[39m\u001B[K\u001B[J');
  expect(seen(drawn(['a', 'b', 'c', 'd'], { rows: 3 }))).toEqual(['a', 'b', '... 2 more lines']);
  expect(seen(drawn(['a', 'b', 'c'], { rows: 3 }))).toEqual(['a', 'b', 'c']);
  expect(seen(drawn(['long enough'], {}))).toEqual(['long enough']);
});

test('the view is redrawn in one write, follows the size of the window and restores the cursor', async () => {
  const dir = await makeDirectory();
  const ends = new AbortController();
  const stop = new AbortController();
  const socket = join(dir, 'control.sock');
  const { closed } = await serveLocal(fakeDaemon(), { socket, gid: undefined, signal: ends.signal });
  const writes: string[] = [];
  const out: Shell['out'] & { columns: number; rows: number } = {
    isTTY: true,
    columns: 30,
    rows: 4,
    write: (text) => {
      writes.push(text);
      if (writes.length < 2) return;
      out.columns = 200;
      out.rows = 100;
      if (writes.length === 3) stop.abort();
    },
  };
  const shell = { ...recordedShell({ signal: stop.signal, env: { NO_COLOR: '1' } }), out };
  expect(await runProgram(['status', '--watch', '--socket', socket], shell)).toBe(0);
  ends.abort();
  await closed;
  expect(writes).toHaveLength(4);
  expect(writes[0]).toBe('\u001B[2J\u001B[?25l');
  expect(writes[3]).toBe('\n\u001B[?25h');
  for (const write of writes.slice(1, 3)) expect(write.startsWith('\u001B[H')).toBe(true);
  const [small, large] = [seen(writes[1] ?? ''), seen(writes[2] ?? '')];
  expect(small).toHaveLength(4);
  expect(Math.max(...small.map((line) => line.length))).toBe(30);
  expect(large.length).toBeGreaterThan(4);
  expect(Math.max(...large.map((line) => line.length))).toBeGreaterThan(30);
});

test('a stopped daemon is reported above its last report, and shown again when it is back', async () => {
  const dir = await makeDirectory();
  const stop = new AbortController();
  const socket = join(dir, 'control.sock');
  const serve = async (version: string) => {
    const ends = new AbortController();
    const api = fakeDaemon({ report: () => statusOf({ version }) });
    const { closed } = await serveLocal(api, { socket, gid: undefined, signal: ends.signal });
    return async () => {
      ends.abort();
      await closed;
    };
  };
  let end = await serve('1.0.0');
  const wanted = ['kit-connector 1.0.0', 'is not running', 'kit-connector 2.0.0'];
  let turn = Promise.withResolvers<void>();
  const shell = recordedShell({
    signal: stop.signal,
    onOutput: (text) => {
      if (!text.includes(wanted[0] ?? '')) return;
      wanted.shift();
      turn.resolve();
    },
  });
  const watching = runProgram(['status', '--watch', '--socket', socket], shell);
  await turn.promise;
  turn = Promise.withResolvers();
  await end();
  await turn.promise;
  turn = Promise.withResolvers();
  end = await serve('2.0.0');
  await turn.promise;
  stop.abort();
  expect(await watching).toBe(0);
  await end();
  const [, lost = ''] = /is not running.*\n(.*)\n\nKit 7 .*kit-connector 1\.0\.0/u.exec(shell.stdout()) ?? [];
  expect([1, 2, 3, 4, 5].map((s) => texts.last_report(`${s}s`))).toContain(lost);
});
