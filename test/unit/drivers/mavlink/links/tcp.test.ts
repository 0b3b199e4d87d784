/** Links over TCP, on real sockets. */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/links/texts.ts';
import { heartbeat, pieces } from '../frames.ts';
import { listen, opened, over, useLinks } from './test-link.ts';
import { elapse } from '../../../../support/elapse.ts';
import { eventually } from '../../../../support/eventually.ts';
import { freePort } from '../../../../support/ports.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});
// Before the peers are gone.
useLinks();

/** A router on a port: its connections, and the bytes that came over them. */
async function router(port: number) {
  const sockets: Socket[] = [];
  const got: Buffer[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('data', (bytes) => got.push(bytes));
    socket.on('error', () => undefined);
  });
  servers.push(server);
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    sockets,
    got: () => Buffer.concat(got),
    async gone() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}

describe('TCP link', () => {
  it('waits for its router as a client, sends and receives, and reconnects after a loss', async () => {
    const port = await freePort();
    const options = { kind: 'tcp_client', host: '127.0.0.1', port };
    const { link, frames, states, seqs, untilUp, untilDown, untilReceived } = listen(options);
    await untilDown();
    expect(states[0]?.[1]).toContain(`TCP 127.0.0.1:${port}: `);
    const first = await router(port);
    await untilUp();
    await eventually('the router has it', () => first.sockets.length === 1);
    for (const piece of pieces(heartbeat(1), [4])) first.sockets[0]?.write(piece);
    await untilReceived(1);
    expect(frames[0]?.peer).toBe(`127.0.0.1:${port}`);
    link.send(heartbeat(9, 245), `127.0.0.1:${port}`);
    await eventually('the frame arrived', () => first.got().equals(heartbeat(9, 245)));
    await first.gone();
    await untilDown();
    link.send(heartbeat(10, 245));
    expect(link.stats().unsent).toBe(1);
    const second = await router(port);
    await untilUp(2);
    await eventually('the router has it again', () => second.sockets.length === 1);
    second.sockets[0]?.write(heartbeat(2));
    await untilReceived(2);
    expect(seqs()).toEqual([1, 2]);
    expect(states.map(([up]) => up)).toEqual([false, true, false, true]);
  });

  it('discards half a frame of a lost connection', async () => {
    const port = await freePort();
    const one = await router(port);
    const { seqs, untilUp, untilReceived } = listen({ kind: 'tcp_client', host: '127.0.0.1', port });
    await untilUp();
    await eventually('connected', () => one.sockets.length === 1);
    one.sockets[0]?.end(heartbeat(1).subarray(0, 14));
    await untilUp(2);
    await eventually('connected again', () => one.sockets.length === 2);
    one.sockets[1]?.write(heartbeat(2));
    await untilReceived(1);
    expect(seqs()).toEqual([2]);
  });

  it('delays a frame behind a stray start byte only until the connection is quiet', async () => {
    const port = await freePort();
    const one = await router(port);
    const { seqs, untilUp, untilReceived } = listen({ kind: 'tcp_client', host: '127.0.0.1', port });
    await untilUp();
    await eventually('connected', () => one.sockets.length === 1);
    one.sockets[0]?.write(Buffer.concat([Buffer.of(0xfd), heartbeat(4)]));
    await untilReceived(1);
    expect(seqs()).toEqual([4]);
  });

  it('reconnects 15 s after the last frame, but waits a minute for the first one', async () => {
    const port = await freePort();
    const one = await router(port);
    const options = { kind: 'tcp_client', host: '127.0.0.1', port };
    const { link, states, untilUp, untilReceived } = listen(options);
    await untilUp();
    await elapse(50_000);
    await eventually('connected', () => one.sockets.length === 1);
    one.sockets[0]?.write(heartbeat(1));
    await untilReceived(1);
    expect(link.stats().opened).toBe(1);
    await untilUp(2);
    expect(states[1]).toEqual([false, texts.tcp_failed(`127.0.0.1:${port}`, texts.silent(15))]);
  });

  it('serves several vehicles as a listener, and keeps the others when one disconnects', async () => {
    const { port, link, frames, states, untilReceived } = await opened('tcp_listen');
    const [a, b] = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')];
    const got: Buffer[] = [];
    b.on('data', (bytes) => got.push(bytes));
    a.write(heartbeat(1, 1));
    b.write(heartbeat(2, 2));
    await untilReceived(2);
    a.destroy();
    b.write(heartbeat(3, 2));
    await untilReceived(3);
    link.send(heartbeat(0, 245), frames.find(({ sysid }) => sysid === 2)?.peer);
    await eventually('b was answered', () => got.length > 0);
    expect(states).toEqual([[true, undefined]]);
    over.abort();
    // The link resets its connections, so that nothing that it has written is transmitted later.
    const closed = new Promise((resolve) => b.on('error', () => undefined).once('close', resolve));
    await Promise.all([link.ended, closed]);
  });

  it('is tried again within a second after it carried frames, however short and often', async () => {
    const port = await freePort();
    const options = { kind: 'tcp_client', host: '127.0.0.1', port };
    const { link, untilUp, untilDown, untilReceived } = listen(options);
    for (let round = 1; round <= 5; round += 1) {
      const one = await router(port);
      await untilUp(round);
      await eventually('connected', () => one.sockets.length === 1);
      one.sockets[0]?.write(heartbeat(round));
      await untilReceived(round);
      await one.gone();
      await untilDown();
    }
    const last = await router(port);
    await eventually('connected again', () => last.sockets.length === 1, 3_000);
    expect(link.stats().opened).toBeGreaterThanOrEqual(5);
  });

  it('starts listening when its occupied port becomes free', async () => {
    const port = await freePort();
    const other = await router(port);
    const options = { kind: 'tcp_listen', host: '127.0.0.1', port };
    const { states, untilDown, untilUp } = listen(options);
    await untilDown();
    expect(states[0]?.[1]).toContain(`TCP port ${port} of 127.0.0.1: `);
    await other.gone();
    await untilUp();
  });

  it('ends when it is stopped while it connects', async () => {
    // Addresses of this block never answer (RFC 5737).
    const { link } = listen({ kind: 'tcp_client', host: '192.0.2.1', port: 5760 });
    over.abort();
    await link.ended;
    expect(link.stats().up).toBe(false);
  });

  it('has a place for a vehicle while a stranger holds more connections than there are, and none for the 17th vehicle', async () => {
    const { port, frames, untilReceived } = await opened('tcp_listen');
    const open = async (): Promise<Socket> => {
      const socket = connect({ port, host: '127.0.0.1' });
      socket.on('error', () => undefined).resume();
      held.push(socket);
      await once(socket, 'connect');
      return socket;
    };
    const held: Socket[] = [];
    try {
      for (let count = 0; count < 20; count += 1) await open();
      for (let sysid = 1; sysid <= 16; sysid += 1) {
        (await open()).write(heartbeat(0, sysid));
        await untilReceived(sysid);
      }
      expect(new Set(frames.map(({ sysid }) => sysid)).size).toBe(16);
      const refused = await open();
      await eventually('the vehicle above the maximum is refused', () => refused.destroyed);
      held.at(-2)?.write(heartbeat(1, 16));
      await untilReceived(17);
    } finally {
      for (const socket of held) socket.destroy();
    }
  });
});
