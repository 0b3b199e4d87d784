/** The user at the other end of a Unix socket. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { userOf } from '../../../../src/platform/linux/socket-user.ts';
import { testDirectory } from '../../../support/test-directory.ts';

it('is found by the credentials that the kernel keeps, and is unknown once the socket is closed', async () => {
  const dir = await testDirectory();
  const server = createServer();
  server.listen(join(dir, 'socket'));
  await once(server, 'listening');
  const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve));
  const client = connect(join(dir, 'socket'));
  const socket = await accepted;
  const { uid, username } = userInfo();
  expect(await userOf(socket)).toEqual({ uid, name: username });
  socket.destroy();
  expect(await userOf(socket)).toEqual({ uid: null, name: null });
  client.destroy();
  server.close();
});
