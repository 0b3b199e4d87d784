/** The control socket and its client, over a real Unix socket. */
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { userInfo } from 'node:os';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { CommandRefused } from '../../../../src/platform/errors.ts';
import type { LocalApi, TailLine } from '../../../../src/kit/local/api.ts';
import { DaemonRefused, DaemonUnavailable, localClient } from '../../../../src/kit/local/client.ts';
import { serveLocal } from '../../../../src/kit/local/server.ts';
import { testDirectory } from '../../../support/test-directory.ts';
import { camera, drone, fakeDaemon, messageOf, statusOf, taskOf } from './fake-daemon.ts';

let ends: AbortController;
beforeEach(() => {
  ends = new AbortController();
});
afterEach(() => ends.abort());

/** Serves `api` on a socket of its own until the test ends, and sees that nothing of it is left. */
async function served(api: LocalApi): Promise<string> {
  const socket = join(await testDirectory(), 'control.sock');
  const { closed } = await serveLocal(api, { socket, gid: undefined, signal: ends.signal });
  onTestFinished(async () => {
    ends.abort();
    await closed;
    expect(existsSync(socket)).toBe(false);
  });
  return socket;
}

test('the report reaches the client as the daemon gave it', async () => {
  const socket = await served(fakeDaemon());
  expect(await localClient(socket, ends.signal).status()).toEqual(statusOf());
});

test('only the owner and the group may use the socket', async () => {
  const socket = await served(fakeDaemon());
  expect(statSync(socket).mode & 0o777).toBe(0o660);
});

test('a socket that a killed daemon left behind is replaced', async () => {
  const dir = await testDirectory();
  const socket = join(dir, 'control.sock');
  writeFileSync(socket, '');
  const { closed } = await serveLocal(fakeDaemon(), { socket, gid: undefined, signal: ends.signal });
  expect((await localClient(socket, ends.signal).tasks()).length).toBe(1);
  ends.abort();
  await closed;
});

test('a socket on which another daemon answers is left alone', async () => {
  const dir = await testDirectory();
  const socket = join(dir, 'control.sock');
  const other = createServer().listen(socket);
  await expect(serveLocal(fakeDaemon(), { socket, gid: undefined, signal: ends.signal })).rejects.toThrow(
    /another kit-connector listens/,
  );
  expect(existsSync(socket)).toBe(true);
  other.close();
});

test('a client without a daemon gets an error with the socket and the remedy', async () => {
  const client = localClient('/nowhere/control.sock', ends.signal);
  await expect(client.status()).rejects.toThrow(DaemonUnavailable);
  await expect(client.status()).rejects.toThrow(
    'kit-connector is not running (/nowhere/control.sock: no such file or directory); start it, or name its socket with --socket',
  );
});

test.each([
  ['its id', drone.id],
  ['its key', drone.key],
  ['its name in any case', 'FALCON'],
])(
  'a task is dispatched, as one of the user who asks, to the asset that is named by %s',
  async (_, asset) => {
    const daemon = fakeDaemon();
    const socket = await served(daemon);
    const client = localClient(socket, ends.signal);
    const task = await client.dispatch({
      asset,
      command: 'set_mode',
      payload: { mode: 'AUTO' },
      deadline_s: 5,
    });
    expect(task.status).toBe('pending');
    expect(daemon.dispatched).toEqual([
      {
        asset_id: drone.id,
        command: 'set_mode',
        payload: { mode: 'AUTO' },
        deadline_s: 5,
        user: { uid: userInfo().uid, name: userInfo().username },
      },
    ]);
    expect((await client.task(task.id)).result).toEqual({ armed: true });
  },
);

test.each([
  ['Falcno', /there is no asset "Falcno"; did you mean "Falcon"\?/],
  ['Gate', /2 assets are named "Gate"; use a key: onvif:2, onvif:3/],
])('a task for %s is refused with a sentence', async (asset, sentence) => {
  const daemon = fakeDaemon();
  const socket = await served(daemon);
  const refused = localClient(socket, ends.signal).dispatch({ asset, command: 'arm' });
  await expect(refused).rejects.toThrow(sentence);
  await expect(refused).rejects.toThrow(DaemonRefused);
  expect(daemon.dispatched).toEqual([]);
});

test('the sentence of a refused command, of an unknown task and of an unknown route reaches the client', async () => {
  const dispatch = async (): Promise<never> => {
    throw new CommandRefused('arm is disabled on this kit');
  };
  const socket = await served(fakeDaemon({ dispatch }));
  const client = localClient(socket, ends.signal);
  await expect(client.dispatch({ asset: 'Falcon', command: 'arm' })).rejects.toThrow(
    /^arm is disabled on this kit$/,
  );
  await expect(client.task('nix')).rejects.toThrow('there is no task nix');
});

test('a body with an unknown key is refused before it reaches the daemon', async () => {
  const daemon = fakeDaemon();
  const socket = await served(daemon);
  const client = localClient(socket, ends.signal);
  await expect(client.retryQuarantined([-1])).rejects.toThrow(DaemonRefused);
  expect(daemon.selections).toEqual([]);
});

test('quarantined rows are retried or discarded, by id or all of them', async () => {
  const daemon = fakeDaemon();
  const socket = await served(daemon);
  const client = localClient(socket, ends.signal);
  const [row] = await client.quarantine();
  expect(await client.quarantined(row!.id)).toEqual({ ...row, body: '{}' });
  await expect(client.quarantined(1)).rejects.toThrow('no message 1 is in quarantine');
  expect(await client.retryQuarantined([row!.id])).toBe(1);
  expect(await client.discardQuarantined()).toBe(3);
  expect(daemon.selections).toEqual([[row!.id], undefined]);
});

test('a follower receives what its filters pass, and is released when it disconnects', async () => {
  const daemon = fakeDaemon();
  const socket = await served(daemon);
  const reader = new AbortController();
  const falcon = { asset: 'falcon', feed: 'gps' };
  const lines = localClient(socket, reader.signal).tail(falcon)[Symbol.asyncIterator]();
  const first = lines.next();
  await daemon.followed(1);
  daemon.say(messageOf({ asset: camera }));
  daemon.say(messageOf({ feed: 'battery' }));
  daemon.say(messageOf());
  expect((await first).value).toEqual(messageOf());
  reader.abort();
  expect((await lines.next()).done).toBe(true);
  await daemon.followed(0);
});

test('following ends when the daemon stops', async () => {
  const daemon = fakeDaemon();
  const socket = await served(daemon);
  const lines = localClient(socket, new AbortController().signal).tail({})[Symbol.asyncIterator]();
  const next = lines.next();
  await daemon.followed(1);
  ends.abort();
  expect((await next).done).toBe(true);
});

test('a slow reader loses lines and gets their number', async () => {
  const daemon = fakeDaemon();
  const socket = await served(daemon);
  const reader = connect(socket);
  reader.write('GET /tail HTTP/1.1\r\nhost: kit\r\nconnection: close\r\n\r\n');
  await daemon.followed(1);
  reader.pause();
  const text = 'x'.repeat(10_000);
  for (let n = 0; n < 1_000; n += 1) daemon.say(messageOf({ data: { n, text } }));
  reader.resume();
  let received = '';
  const numbers = new Set<number>();
  let skipped = 0;
  for await (const chunk of reader) {
    received += String(chunk);
    const rows = received.split('\r\n').flatMap((part) => part.split('\n'));
    received = rows.pop() ?? '';
    for (const row of rows.filter((row) => row.startsWith('{"kind"'))) {
      const line = JSON.parse(row) as TailLine;
      if (line.kind === 'skipped') skipped += line.lines;
      else numbers.add(Number(line.data?.['n']));
    }
    if (skipped > 0) break;
    daemon.say(messageOf({ data: { n: 1_000 } }));
  }
  numbers.delete(1_000);
  expect(skipped).toBeGreaterThan(0);
  expect(numbers.size).toBeLessThan(1_000);
});

test('tasks are listed as the daemon keeps them', async () => {
  const socket = await served(fakeDaemon());
  expect(await localClient(socket, ends.signal).tasks()).toEqual([taskOf()]);
});

test('an asset is removed by its name, or the request is refused with the sentence of the daemon', async () => {
  const forgotten: unknown[] = [];
  const forgetAsset: LocalApi['forgetAsset'] = (asset_id, user) => {
    if (asset_id !== drone.id) throw new CommandRefused('Gate is online: cameras still reaches it');
    forgotten.push(user.uid);
    return drone;
  };
  const socket = await served(fakeDaemon({ forgetAsset }));
  const client = localClient(socket, ends.signal);
  expect(await client.forgetAsset('falcon')).toEqual(drone);
  expect(forgotten).toEqual([userInfo().uid]);
  await expect(client.forgetAsset(camera.key)).rejects.toThrow('Gate is online: cameras still reaches it');
  await expect(client.forgetAsset('nothing')).rejects.toThrow('there is no asset "nothing"');
});
