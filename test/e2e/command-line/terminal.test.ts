/** The command line on a real terminal: nothing is wider than it, and colours are there only where they are wanted. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { widthOf } from '../../../src/cli/terminal/width.ts';
import { fillBuffer } from '../../bench/support/prefill.ts';
import { startMosquitto } from '../../support/brokers/broker.ts';
import { startChild } from '../../support/child.ts';
import { eventually } from '../../support/eventually.ts';
import { command_file, withKit } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';
import { withDirectory } from '../../support/temporary.ts';
import { onTerminal } from '../../support/kit/terminal.ts';

const escape = '\u001B[';
const introduction_ends = 'Published messages (Ctrl-C stops):\n';

function widest(text: string): number {
  return Math.max(...stripVTControlCharacters(text).split('\n').map(widthOf));
}

describe.skipIf(peerMissing('script', 'stty'))('on a terminal', { timeout: 90_000 }, () => {
  it('npm start shows a short line for each message, and none for definitions of commands', async () => {
    await withDirectory(async (dir) => {
      const { code, drawn } = await onTerminal(['demo'], {
        columns: 80,
        env: { XDG_STATE_HOME: dir },
        until: /Quadrotor 1.*attitude/u,
      });
      expect(code).toBe(0);
      const [published = ''] = drawn.split(introduction_ends).slice(1);
      expect(published).toContain(escape);
      const [lines = ''] = stripVTControlCharacters(published).split(/^.*stopped: /mu);
      expect(widest(lines)).toBeLessThanOrEqual(80);
      expect(lines).toMatch(/^[\d:]{8} {2}Gate camera +asset +online {2}camera {2}Acme Simulated dome/mu);
      expect(lines).not.toMatch(/ commands /u);
    });
  });

  it('status, tail, task and doctor fit its width', async () => {
    await withDirectory(async (dir) => {
      const demo = startChild([command_file, 'demo'], { env: { XDG_STATE_HOME: dir } });
      try {
        await demo.printed(/Quadrotor 1.*attitude/u);
        const config = ['--config', join(dir, 'kit-connector-demo', 'config.yaml')];
        const [status, tail, doctor, tasks] = await Promise.all([
          onTerminal(['status', ...config], { columns: 80 }),
          onTerminal(['tail', ...config], { columns: 80, until: /attitude/u }),
          onTerminal(['doctor', ...config], { columns: 80 }),
          onTerminal(['task', ...config], { columns: 80, env: { NO_COLOR: '1' } }),
        ]);
        expect(status.drawn).toContain(escape);
        expect(stripVTControlCharacters(status.drawn)).toMatch(/^ {2}Gate camera +camera +online/mu);
        expect(tasks.drawn).not.toContain(escape);
        for (const { drawn } of [status, tail, tasks]) expect(widest(drawn)).toBeLessThanOrEqual(80);
        // A path keeps a line of its own.
        const sentences = doctor.drawn.split('\n').filter((line) => !line.includes(dir));
        expect(widest(sentences.join('\n'))).toBeLessThanOrEqual(80);
      } finally {
        await demo.end('SIGTERM');
      }
    });
  });

  it.skipIf(peerMissing('mosquitto'))('status and tail show how far a backlog is drained', async () => {
    const broker = await startMosquitto();
    try {
      await withKit({ rehearsed: false }, async (kit) => {
        await kit.configure({
          broker: { url: broker.url },
          uplink: { backlog_kbps: { default: 32 } },
          drivers: [kit.gateway],
        });
        await mkdir(join(kit.dir, 'state'));
        await fillBuffer(join(kit.dir, 'state', 'buffer.db'), 20_000);
        await kit.start();
        // A broker without a subscriber takes nothing that counts as delivered.
        await kit.listen(broker.url);
        await eventually('it drains', async () => ((await kit.status()).outbox.drain?.per_s ?? 0) > 0);
        const config = ['--config', kit.config_file];
        const [status, tail] = await Promise.all([
          onTerminal(['status', ...config], { columns: 80 }),
          onTerminal(['tail', ...config], { columns: 80, until: /draining.*left/u }),
        ]);
        for (const { drawn } of [status, tail]) {
          expect(drawn).toMatch(/draining {2}[█░]{20} +\d+ % {2}[\d,]+ messages left/u);
        }
        expect(widest(status.drawn)).toBeLessThanOrEqual(80);
      });
    } finally {
      await broker.stop();
    }
  });

  it('check ends with one line on a good configuration', async () => {
    await withDirectory(async (dir) => {
      const file = join(dir, 'config.yaml');
      await writeFile(file, `state_dir: ${dir}\nruntime_dir: ${dir}\n`);
      const { code, drawn } = await onTerminal(['check', file], { columns: 80 });
      expect(code).toBe(0);
      expect(stripVTControlCharacters(drawn)).toContain(`${file}: ok`);
    });
  });
});
