/** WebSocket clients that send much and read nothing: what waits for them is bounded, and other clients are served. */
import { randomBytes } from 'node:crypto';
import { getEventListeners, once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { Gate } from '../../../../src/cloud/access/gate.ts';
import { KeyRing } from '../../../../src/cloud/access/keys.ts';
import { turn } from '../../../../src/platform/time.ts';
import {
  behind_chars_max,
  heartbeat_ms,
  type Served,
  SocketSession,
} from '../../../../src/cloud/live/socket-session.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { kit_id, samples } from '../../../support/contract-samples.ts';
import { eventually } from '../../../support/eventually.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

let lab: ServiceLab;
const opened: Socket[] = [];
beforeEach(async () => {
  lab = await startServiceLab(kit_id);
  await lab.publish(channels.state, samples['kitState'] ?? {});
});
afterEach(async () => {
  vi.useRealTimers();
  for (const socket of opened.splice(0)) socket.destroy();
  await lab.stop();
});

/** A client that has sent its handshake and reads no more than its answer. */
async function handshake(headers: Readonly<Record<string, string>>): Promise<Socket> {
  const { hostname, port } = new URL(lab.url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on('error', () => undefined);
  opened.push(socket);
  const lines = {
    Host: `${hostname}:${port}`,
    Upgrade: 'websocket',
    Connection: 'Upgrade',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': randomBytes(16).toString('base64'),
    ...headers,
  };
  const text = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`GET /api/ws HTTP/1.1\r\n${text.join('')}\r\n`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  expect(answer.toString('latin1')).toMatch(/^HTTP\/1\.1 101 /u);
  socket.pause();
  return socket;
}

const ping = 9;
/** A masked frame of a client. */
function frame(opcode: number, payload: string): Buffer {
  const body = Buffer.from(payload);
  const header = Buffer.from([0x80 | opcode, 0x80 | body.length, 0, 0, 0, 0]);
  return Buffer.concat([header, body]);
}

describe('a client that does not read', () => {
  it.each([
    ['with a key', true],
    ['without a key', false],
  ])('%s and sends a million pings is cut off', async (_, isKnown) => {
    const client = await handshake(isKnown ? { 'X-Api-Key': lab.key } : {});
    const flood = Buffer.concat(Array<Buffer>(1_000).fill(frame(ping, 'x'.repeat(125))));
    let sent = 0;
    const send = (): void => {
      while (sent < 1_000 && !client.destroyed) {
        sent += 1;
        if (!client.write(flood)) break;
      }
    };
    client.on('drain', send);
    send();
    await eventually('it is cut off', () => client.destroyed);
    expect(sent).toBeLessThan(1_000);
  });
});

interface Scene {
  readonly session: SocketSession;
  /** The service's end. */
  readonly socket: WebSocket;
  /** Reads nothing. */
  readonly client: WebSocket;
}

/** A session with a client that reads nothing, and with megabytes that wait for it unless `waiting_bytes` is 0. */
async function withSession(
  served: Partial<Served>,
  play: (scene: Scene) => Promise<void>,
  waiting_bytes = 16_000_000,
): Promise<void> {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const ends = new AbortController();
  try {
    const asked = Promise.withResolvers<WebSocket>();
    server.on('connection', asked.resolve);
    const client = new WebSocket(`ws://127.0.0.1:${port}`);
    await once(client, 'open');
    const socket = await asked.promise;
    const keys = new KeyRing(lab.store);
    await keys.reload();
    const principal = keys.principal(lab.key.split('_')[1] ?? '');
    const asker = { headers: {}, address: '127.0.0.1' };
    const gate = new Gate({ keys, store: lab.store, hosts: [], isSecure: false });
    const session = new SocketSession(
      socket,
      { gate, asker, principal, signal: ends.signal },
      {
        read: () => ({ type: 'ping' }),
        isOpenTo: async () => true,
        isDue: () => false,
        writeNext: async () => undefined,
        ...served,
      },
    );
    session.start();
    client.pause();
    if (waiting_bytes > 0) socket.send(Buffer.alloc(waiting_bytes));
    expect(socket.bufferedAmount > 1_000_000).toBe(waiting_bytes > 0);
    await play({ session, socket, client });
    client.terminate();
  } finally {
    ends.abort();
    server.close();
  }
}

/** The next heartbeat, and what the event loop had waiting. */
async function beat(): Promise<void> {
  vi.advanceTimersByTime(heartbeat_ms);
  await turn();
  await turn();
}

const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

describe('a session whose client does not read', () => {
  it('queues no second heartbeat, however often the client asks for one', async () => {
    let pings = 0;
    const read: Served['read'] = () => {
      pings += 1;
      return { type: 'ping' };
    };
    await withSession({ read }, async ({ socket, client }) => {
      const waiting = socket.bufferedAmount;
      for (let n = 0; n < 15; n += 1) client.send('{"type":"ping"}');
      await eventually('all are read', () => pings === 15);
      expect(socket.bufferedAmount).toBeLessThanOrEqual(waiting);
    });
  });

  it('is cut off once it has answered neither of two heartbeats', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    await withSession({}, async ({ socket, session }) => {
      const code = new Promise<number>((resolve) => socket.on('close', resolve));
      vi.advanceTimersByTime(heartbeat_ms);
      expect(socket.readyState).toBe(socket.OPEN);
      vi.advanceTimersByTime(heartbeat_ms);
      expect(await code).toBe(1006);
      expect(session.closed.aborted).toBe(true);
    });
  });

  it('is kept while it reads slowly what was sent before the heartbeats, and cut off when it reads nothing', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    let sent_chars = 0;
    let send: (frame: { readonly type: string }) => void = () => undefined;
    const large = { type: 'feed', text: 'x'.repeat(4_000) };
    const served = {
      isDue: () => true,
      writeNext: async () => {
        sent_chars += 4_000;
        send(large);
      },
    };
    const flood = async ({ session, socket, client }: Scene): Promise<void> => {
      send = (frame) => session.send(frame);
      await session.pump();
      // It is sent no more than it may be behind, though the kernel would take megabytes.
      expect(sent_chars).toBeLessThan(behind_chars_max + 8_000);
      // At the least rate it has read not even its first part.
      for (let n = 0; n < 5; n += 1) await beat();
      expect(socket.readyState).toBe(socket.OPEN);
      const before = sent_chars;
      client.resume();
      await eventually('it has caught up and is sent more', () => sent_chars > before + 500_000);
      client.pause();
      const closed = once(socket, 'close');
      for (let n = 0; n < 24; n += 1) await beat();
      await closed;
    };
    await withSession(served, flood, 0);
  });

  it('is sent more with the pong that says what it has read, without waiting for a timer', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'] });
    const flow = { sent_chars: 0 };
    const large = { type: 'feed', text: 'x'.repeat(4_000) };
    let send: (frame: { readonly type: string }) => void = () => undefined;
    const served = {
      isDue: () => flow.sent_chars < 2 * behind_chars_max,
      writeNext: async () => {
        flow.sent_chars += 4_000;
        send(large);
      },
    };
    const flood = async ({ session, client }: Scene): Promise<void> => {
      send = (frame) => session.send(frame);
      await session.pump();
      expect(flow.sent_chars).toBeLessThan(2 * behind_chars_max);
      client.resume();
      while (flow.sent_chars < 2 * behind_chars_max) await turn();
    };
    await withSession(served, flood, 0);
  });

  it('is kept when its pong has arrived during a stall of the service', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    await withSession(
      {},
      async ({ socket, client }) => {
        vi.advanceTimersByTime(heartbeat_ms);
        await turn();
        // In one turn the client answers, and the next heartbeat is due before the service has read that.
        client.pong('0');
        vi.advanceTimersByTime(heartbeat_ms);
        await turn();
        await turn();
        expect(socket.readyState).toBe(socket.OPEN);
      },
      0,
    );
  });

  it('is sent what is due when it reads again, though nothing changes any more', async () => {
    const state = { due: 1, looks: 0, sent: 0 };
    const served = {
      isDue: () => {
        state.looks += 1;
        return state.due > state.sent;
      },
      writeNext: async () => {
        state.sent = state.due;
      },
    };
    await withSession(served, async ({ session, client }) => {
      await session.pump();
      await eventually('it looks again', () => state.looks > 1);
      state.due = 2;
      await session.pump();
      expect(state.sent).toBe(0);
      client.resume();
      await eventually('it is sent', () => state.sent === 2);
    });
  });

  it('looks again by one timer, however much changes meanwhile', async () => {
    let looks = 0;
    const isDue = (): boolean => (looks += 1) > 0;
    await withSession({ isDue }, async ({ session }) => {
      const before = { timers: timers(), listeners: getEventListeners(session.closed, 'abort').length };
      for (let n = 0; n < 1_000; n += 1) await session.pump();
      expect(timers() - before.timers).toBeLessThan(100);
      await eventually('it looks again', () => looks > 1_002);
      expect(getEventListeners(session.closed, 'abort')).toHaveLength(before.listeners);
    });
  });
});
