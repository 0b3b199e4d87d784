/** Two demos at once: the service of the second one takes a free port, and the file of the first one stays as it is. */
import { once } from 'node:events';
import { mkdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { demo, demoService, withFreePort } from '../../../src/cli/demo/demo.ts';
import { claimOf } from '../../../src/cli/demo/free-ports.ts';
import { texts } from '../../../src/kit/local/texts.ts';
import { freePort } from '../../support/ports.ts';
import { makeDirectory } from '../../support/temporary.ts';
import { kit_id, readText } from '../kit/config/lab.ts';
import { recordedShell } from './shell-of-test.ts';

it('the demo keeps a free port and moves away from one that another program uses', async () => {
  const taken = await freePort();
  const other = createServer().listen(taken, '127.0.0.1');
  await once(other, 'listening');
  const dir = await makeDirectory();
  const text = `kit_id: ${kit_id}\nservice:\n  listen: 127.0.0.1:${taken}\n`;
  const config = await readText(dir, text);
  const moved = await withFreePort(config);
  expect(moved.service?.listen.host).toBe('127.0.0.1');
  expect(moved.service?.listen.port).not.toBe(taken);
  expect(moved.service?.listen.port).toBeGreaterThan(0);
  other.close();
  await once(other, 'close');
  expect((await withFreePort(config)).service?.listen.port).toBe(taken);
});

it('the demo leaves a port to another demo that is about to listen on it', async () => {
  const wanted = await freePort();
  const other = createServer().listen({ path: claimOf(wanted) });
  await once(other, 'listening');
  const dir = await makeDirectory();
  const config = await readText(dir, `kit_id: ${kit_id}\nservice:\n  listen: 127.0.0.1:${wanted}\n`);
  expect((await withFreePort(config)).service?.listen.port).not.toBe(wanted);
  other.close();
  await once(other, 'close');
  expect((await withFreePort(config)).service?.listen.port).toBe(wanted);
});

it('a new demo configures a free port where 8080 is in use', async () => {
  const other = createServer().listen(8_080, '127.0.0.1');
  // Somebody else may have it already, which is as good.
  await once(other, 'listening').catch(() => undefined);
  onTestFinished(() => void other.close());
  const [, port = ''] = /listen: 127\.0\.0\.1:(\d+)\n/u.exec(await demoService()) ?? [];
  expect(Number(port)).toBeGreaterThan(0);
  expect(port).not.toBe('8080');
});

it('a second demo of the same directory names the first one, and not the ports that it uses', async () => {
  const dir = await makeDirectory();
  const own = join(dir, 'kit-connector-demo');
  const socket = join(own, 'control.sock');
  await mkdir(own);
  const first = createServer().listen(socket);
  const camera = createServer();
  await once(first, 'listening');
  try {
    const shell = recordedShell({ env: { XDG_STATE_HOME: dir } });
    await expect(demo({}, shell)).rejects.toThrow(texts.already_listening(socket));
    const [, port] =
      /name: Gate camera, .*port: (\d+)/u.exec(await readFile(join(own, 'config.yaml'), 'utf8')) ?? [];
    camera.listen(Number(port), '127.0.0.1');
    await once(camera, 'listening');
    await expect(demo({}, shell)).rejects.toThrow(texts.already_listening(socket));
    expect(shell.stdout() + shell.stderr()).toBe('');
  } finally {
    camera.close();
    first.close();
  }
});
