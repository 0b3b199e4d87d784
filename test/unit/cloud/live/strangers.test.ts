/** Hosts without a key that hold all sockets of a service: who has a key gets one. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { Gate } from '../../../../src/cloud/access/gate.ts';
import { KeyRing } from '../../../../src/cloud/access/keys.ts';
import { TrustedProxies } from '../../../../src/cloud/access/proxies.ts';
import { Changes } from '../../../../src/cloud/changes.ts';
import { acceptSockets, socket_limits_default } from '../../../../src/cloud/live/upgrade.ts';
import { Service } from '../../../../src/cloud/service.ts';
import { kit_id } from '../../../support/contract-samples.ts';
import { eventually } from '../../../support/eventually.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

const sockets_max = 4;
let stop: AbortController;
let server: Server;
let lab: ServiceLab;
let port = 0;

beforeEach(async () => {
  stop = new AbortController();
  server = createServer();
  lab = await startServiceLab(kit_id);
});

async function serve(socket_limits = socket_limits_default, proxies = new TrustedProxies()): Promise<void> {
  const keys = new KeyRing(lab.store);
  await keys.reload();
  const gate = new Gate({ keys, store: lab.store, hosts: [], isSecure: false, proxies });
  const dispatch = async (): Promise<void> => undefined;
  const parts = { store: lab.store, changes: new Changes(), log: lab.log, now: Date.now };
  const service = new Service({ ...parts, dispatcher: { dispatch, cancel: dispatch } });
  const { signal } = stop;
  acceptSockets(server, {
    ...parts,
    gate,
    service,
    socket_limits,
    signal,
    sockets_max,
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
}

afterEach(async () => {
  stop.abort();
  server.closeAllConnections();
  server.close();
  await lab.stop();
});

async function open(headers: Readonly<Record<string, string>> = {}): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/api/ws`, { headers });
  await Promise.race([
    once(socket, 'open'),
    once(socket, 'error').then(([error]) => Promise.reject(error as Error)),
  ]);
  return socket;
}

/** Closes with 4429 when its key has too many sockets. */
async function authenticated(headers: Readonly<Record<string, string>> = {}): Promise<WebSocket> {
  const socket = await open(headers);
  socket.send(JSON.stringify({ type: 'auth', api_key: lab.key }));
  socket.send(JSON.stringify({ type: 'ping' }));
  await Promise.race([once(socket, 'message'), once(socket, 'close')]);
  return socket;
}

describe('sockets whose key comes with the first frame', () => {
  it('count for their key, and not for the address of the proxy that they share', async () => {
    await serve({ ...socket_limits_default, sockets_per_key: 2 });
    const sockets = [await authenticated(), await authenticated(), await authenticated()];
    expect(sockets.map(({ readyState }) => readyState)).toEqual([
      WebSocket.OPEN,
      WebSocket.OPEN,
      WebSocket.CLOSED,
    ]);
    await expect(open({ 'x-api-key': lab.key })).rejects.toThrow('429');
    sockets[0]?.terminate();
    await eventually('its place is free', async () =>
      open({ 'x-api-key': lab.key }).then(
        () => true,
        () => false,
      ),
    );
    // Strangers of the same proxy have as many as there are places in all.
    for (let n = 0; n < sockets_max; n += 1) await open();
  });

  it('leave their place to others of their address, which a trusted proxy names', async () => {
    const proxies = new TrustedProxies({ trusted: ['127.0.0.1'], header: 'x-forwarded-for' });
    await serve({ ...socket_limits_default, sockets_per_key: 2 }, proxies);
    const client = { 'x-forwarded-for': '198.51.100.7' };
    await authenticated(client);
    await authenticated(client);
    await open(client);
    await open(client);
    await expect(open(client)).rejects.toThrow('429');
  });
});

describe('sockets whose key is yet to come', () => {
  it('give way when there are no more places, the oldest first, until their first frame has the key', async () => {
    await serve();
    const [first, second] = [await open(), await open()];
    first.send(JSON.stringify({ type: 'auth', api_key: lab.key }));
    first.send(JSON.stringify({ type: 'ping' }));
    await once(first, 'message');
    await open();
    await open();
    const isCut = once(second, 'close');
    const own = await open({ 'x-api-key': lab.key });
    await isCut;
    expect([first, own].map(({ readyState }) => readyState)).toEqual([WebSocket.OPEN, WebSocket.OPEN]);
    await open({ 'x-api-key': lab.key });
    await open({ 'x-api-key': lab.key });
    await expect(open()).rejects.toThrow('503');
    expect([first, own].map(({ readyState }) => readyState)).toEqual([WebSocket.OPEN, WebSocket.OPEN]);
  });
});
