/** The page `src/help/first-kit.md` does what it says: its commands, run as they stand there on other ports, connect a kit. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { eventually } from '../../support/eventually.ts';
import { command_file } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';
import { freePort } from '../../support/ports.ts';
import { withDirectory } from '../../support/temporary.ts';

const help = join(import.meta.dirname, '../../../src/help');
const kits = z.array(z.object({ name: z.string(), online: z.boolean() }));

test.skipIf(peerMissing('mosquitto', 'mosquitto_passwd', 'openssl', 'bash', 'curl'))(
  'the commands of the first page connect a kit to a service',
  async () => {
    await withDirectory(async (dir) => {
      const page = await readFile(join(help, 'first-kit.md'), 'utf8');
      const ports = await Promise.all(
        [8883, 8884, 8080].map(async (port) => [port, await freePort()] as const),
      );
      const blocks = [...page.matchAll(/^```sh\n(.*?)^```$/gmsu)].map(([, block = '']) => block);
      expect(blocks.length).toBe(4);
      const script = ports.reduce(
        (text, [port, free]) => text.replaceAll(String(port), String(free)),
        blocks.slice(0, 3).join(''),
      );
      const bin = join(dir, 'bin');
      await mkdir(bin);
      await writeFile(
        join(bin, 'kit-connector'),
        `#!/bin/sh\nexec ${process.execPath} ${command_file} "$@"\n`,
      );
      await chmod(join(bin, 'kit-connector'), 0o755);
      // What it starts in the background ends with it: one process group.
      const shell = spawn('bash', ['-euc', `${script}\nwait`], {
        cwd: dir,
        detached: true,
        env: { ...process.env, PATH: `${bin}:${process.env['PATH'] ?? ''}:/usr/sbin` },
        stdio: ['ignore', 'inherit', 'inherit'],
      });
      try {
        const url = `http://127.0.0.1:${ports[2]?.[1]}/api/kits`;
        await eventually(
          'the kit is online',
          async () => {
            const key = (await readFile(join(dir, 'first-kit/key'), 'utf8').catch(() => '')).trim();
            const answer = await fetch(url, { headers: { 'X-API-Key': key } }).catch(() => undefined);
            if (!answer?.ok) return false;
            return kits.parse(await answer.json()).some(({ name, online }) => name === 'Kit 1' && online);
          },
          90_000,
        );
      } finally {
        const ended = once(shell, 'exit');
        if (shell.pid !== undefined) process.kill(-shell.pid, 'SIGTERM');
        await ended;
      }
    });
  },
);

test('the pages of the help lead nowhere that is not there', async () => {
  for (const name of await readdir(help)) {
    const page = await readFile(join(help, name), 'utf8');
    for (const [, target = ''] of page.matchAll(/\]\((?!https?:)([^)#]+)/gu))
      await expect(
        readFile(join(dirname(join(help, name)), target)),
        `${name}: ${target}`,
      ).resolves.toBeDefined();
  }
});
