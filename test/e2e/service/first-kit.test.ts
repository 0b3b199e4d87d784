/** The page `src/help/first-kit.md` does what it says: its commands, run as they stand there on other ports, connect a kit. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { startChild } from '../../support/child.ts';
import { eventually } from '../../support/eventually.ts';
import { command_file } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';
import { freePort } from '../../support/ports.ts';
import { run, withDirectory } from '../../support/temporary.ts';

const help = join(import.meta.dirname, '../../../src/help');
const kits = z.array(z.object({ id: z.string(), name: z.string(), online: z.boolean() }));
const assets = z.object({ assets: z.array(z.object({ type: z.string(), status: z.string() })) });

function isGroup(pid: number): boolean {
  try {
    return process.kill(-pid, 0);
  } catch {
    return false;
  }
}

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
        // Of a user of Debian, who finds no broker: https://github.com/FuriLabs/issue-tracker/issues/205
        env: { ...process.env, PATH: `${bin}:/usr/local/bin:/usr/bin:/bin` },
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
        const { pid = 0 } = shell;
        const ended = once(shell, 'exit');
        process.kill(-pid, 'SIGTERM');
        await ended;
        await eventually('all that it started has ended', () => !isGroup(pid));
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

test.skipIf(peerMissing('mosquitto_sub', 'mosquitto_pub', 'bash', 'curl', 'jq'))(
  'the requests and messages of the pages for integrators, as they are typed at a demo kit',
  async () => {
    await withDirectory(async (dir) => {
      const demo = startChild([command_file, 'demo'], { env: { XDG_STATE_HOME: dir } });
      try {
        await demo.printed(/Published messages/u);
        const output = demo.output();
        const [url = '', key = ''] = [/kit: (http:\S+)/u, /API key: (\S+)/u].map(
          (each) => each.exec(output)?.[1],
        );
        const port = /mqtt:\/\/127\.0\.0\.1:(\d+)/u.exec(output)?.[1] ?? '';
        const blocksOf = async (name: string): Promise<string> =>
          Array.from(
            (await readFile(join(help, name), 'utf8')).matchAll(/^```sh\n(.*?)^```$/gmsu),
            ([, block]) => block,
          ).join('');
        const ask = async (path: string): Promise<unknown> =>
          (await fetch(url + path, { headers: { 'X-API-Key': key } })).json();
        const [{ id: kit_id } = { id: '' }] = kits.parse(await ask('/api/kits'));
        await eventually('a drone takes commands', async () =>
          assets
            .parse(await ask(`/api/kits/${kit_id}/assets`))
            .assets.some(({ type, status }) => type === 'drone' && status === 'online'),
        );
        const api = (await blocksOf('api.md')).replace(/^URL=.*$/mu, `URL=${url} KEY=${key}`);
        const asked = await run('bash', '-euo', 'pipefail', '-c', `cd ${dir}\n${api}`);
        expect(asked).toMatch(
          /"command_name":"hold".*"status":"(?:pending|running|completed)"|"status":"(?:pending|running|completed)".*"command_name":"hold"/u,
        );
        const received = (await blocksOf('receive.md')).replace(/-p 1883/u, `-p ${port}`);
        const steps = await run('bash', '-euo', 'pipefail', '-c', `cd ${dir}\n${received}`);
        expect(steps).toContain('"epoch":');
        expect(steps.trimEnd()).toMatch(/"status":"(?:running|completed|failed)"[^\n]*$/u);
      } finally {
        await demo.end('SIGINT');
      }
    });
  },
  90_000,
);
