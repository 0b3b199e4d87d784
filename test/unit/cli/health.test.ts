/** Health checks of containers: the exit code is what they go by, and the line is what people read in their list. */
import { createServer } from 'node:http';
import { createServer as createSecure } from 'node:https';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runProgram } from '../../../src/cli/program.ts';
import { texts } from '../../../src/cli/texts.ts';
import { serveLocal } from '../../../src/kit/local/server.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { freePort } from '../../support/ports.ts';
import { makeDirectory, withDirectory } from '../../support/temporary.ts';
import { fakeDaemon } from '../kit/local/fake-daemon.ts';
import { recordedShell } from './shell-of-test.ts';

async function typed(...words: readonly string[]) {
  const shell = recordedShell();
  const code = await runProgram(['health', ...words], shell);
  return [code, shell.stdout() + shell.stderr()];
}

it.each([
  ['makes progress', null, 0, 'ok: connected, 4 assets online\n'],
  [
    'makes none',
    'the thread of the buffer has not answered within 2 s',
    1,
    'the thread of the buffer has not answered within 2 s\n',
  ],
])('a daemon that %s', async (_, fault, code, line) => {
  const dir = await makeDirectory();
  const ends = new AbortController();
  const socket = join(dir, 'control.sock');
  const api = fakeDaemon({ health: async () => ({ fault, summary: 'connected, 4 assets online' }) });
  const { closed } = await serveLocal(api, { socket, gid: undefined, signal: ends.signal });
  const file = join(dir, 'config.yaml');
  await writeFile(file, `runtime_dir: ${dir}\ndrivers: []\n`);
  expect(await typed('--config', file)).toEqual([code, line]);
  ends.abort();
  await closed;
  expect(await typed('--config', file)).toEqual([69, expect.stringContaining('not running') as string]);
});

/** The outcome for a configuration with these lines. */
async function ofService(lines: string): Promise<readonly unknown[]> {
  return withDirectory(async (dir) => {
    const file = join(dir, 'service.yaml');
    await writeFile(file, `broker: { url: 'mqtt://127.0.0.1:1883' }\n${lines}\n`);
    return typed('--config', file);
  });
}

it.each([
  [200, 0, 'ok: '],
  [503, 1, 'status 503'],
])(
  'a service that answers with %d, asked at the loopback where it listens everywhere',
  async (status, code, line) => {
    const server = createServer((request, response) => {
      response.statusCode = request.url === '/live' ? status : 404;
      response.end();
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    expect(await ofService(`listen: 0.0.0.0:${port}`)).toEqual([
      code,
      expect.stringContaining(line) as string,
    ]);
    server.close();
  },
);

it('a service that listens with TLS and asks for certificates of clients', async () => {
  const dir = await makeDirectory();
  const { ca, server: pair } = await makeCertificates(dir, 'x');
  const [cert, key, authority] = [pair.cert, pair.key, ca].map((file) => readFileSync(file));
  const server = createSecure({ cert, key, ca: authority, requestCert: true, rejectUnauthorized: true });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const lines = `listen: 127.0.0.1:${port}\ntls: { cert_file: x, key_file: y, client_ca_file: z }`;
  expect(await ofService(lines)).toEqual([0, `ok: 127.0.0.1:${port}\n`]);
  server.close();
});

it('a service that is not there', async () => {
  const port = await freePort();
  const [code, line] = await ofService(`listen: 127.0.0.1:${port}`);
  expect([code, line]).toEqual([
    1,
    expect.stringContaining(texts.no_answer(`127.0.0.1:${port}`, '').slice(0, -2)) as string,
  ]);
});
