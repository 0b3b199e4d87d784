/** Hosts without a key that hold all sockets of a service: who has a key gets one. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { Gate } from '../../../../src/service/access/gate.ts';
import { KeyRing } from '../../../../src/service/access/keys.ts';
import { Changes } from '../../../../src/service/live/changes.ts';
import { acceptSockets, socket_limits_default } from '../../../../src/service/live/upgrade.ts';
import { Service } from '../../../../src/service/service.ts';
import { kit_id } from '../../../support/contract-samples.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

const sockets_max = 4;
const stop = new AbortController();
const server = createServer();
let lab: ServiceLab;
let port = 0;

beforeEach(async () => {
  lab = await startServiceLab(kit_id);
  const keys = new KeyRing(lab.store);
  await keys.reload();
  const gate = new Gate({ keys, store: lab.store, hosts: [], isSecure: false });
  const dispatch = async (): Promise<void> => undefined;
  const parts = { store: lab.store, changes: new Changes(), log: lab.log, now: Date.now };
  const service = new Service({ ...parts, dispatcher: { dispatch, cancel: dispatch } });
  const { signal } = stop;
  acceptSockets(server, {
    ...parts,
    gate,
    service,
    socket_limits: socket_limits_default,
    signal,
    sockets_max,
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
});

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

describe('sockets whose key is yet to come', () => {
  it('give way when there are no more places, the oldest first, until their first frame has the key', async () => {
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
