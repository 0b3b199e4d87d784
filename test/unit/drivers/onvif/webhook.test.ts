/** The limits of the listener that cameras call: no address and no number of addresses keeps it from the others. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Webhook } from '../../../../drivers/onvif/events/webhook.ts';
import { eventually } from '../../../support/eventually.ts';

let webhook: Webhook;
let url: URL;
const taken: string[] = [];
const sockets: Socket[] = [];
beforeEach(async () => {
  taken.length = 0;
  webhook = new Webhook({ listen: '127.0.0.1', port: 0 });
  const hook = await webhook.open(async (xml) => void taken.push(xml));
  if (typeof hook === 'string') throw new Error(hook);
  url = new URL(hook.url('127.0.0.1'));
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await webhook.stop();
});

/** Opens connections of this address that send nothing; resolves with those that the listener did not cut. */
async function hold(localAddress: string, count: number): Promise<readonly Socket[]> {
  const opened = Array.from({ length: count }, () => {
    const socket = connect({ port: Number(url.port), host: url.hostname, localAddress });
    socket.on('error', () => undefined).resume();
    sockets.push(socket);
    return socket;
  });
  for (const socket of opened) if (socket.connecting) await once(socket, 'connect');
  // What the listener cuts is closed before the answer to a connection of another address that came later.
  await post('127.0.0.99', '<later/>').catch(() => undefined);
  return opened.filter((socket) => !isCut(socket));
}

const isCut = (socket: Socket): boolean => socket.readableEnded || socket.destroyed;

/** The status of the answer; rejects where the connection was cut. */
async function post(localAddress: string, body: string): Promise<number> {
  const sent = request(url, { method: 'POST', agent: false, localAddress });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  response.resume();
  return response.statusCode ?? 0;
}

describe('the listener for events of cameras', () => {
  it('asks for the body of a camera that waits for it before it sends it, as libcurl does', async () => {
    const sent = request(url, { method: 'POST', agent: false, headers: { Expect: '100-continue' } });
    sent.flushHeaders();
    await once(sent, 'continue');
    sent.end('<after-the-continue/>');
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    response.resume();
    expect(response.statusCode).toBe(200);
    await eventually('it is taken', () => taken.includes('<after-the-continue/>'));
  });

  it('takes the message of a camera that sends a blank behind the version', async () => {
    // Hikvision doorbells and others (home-assistant/core#92892, #97183, #150524, #158823, #181234).
    const camera = connect(Number(url.port), url.hostname);
    sockets.push(camera);
    camera.end(`POST ${url.pathname} HTTP/1.1 \r\nHost: kit\r\nContent-Length: 8\r\n\r\n<blank/>`);
    const [answer] = (await once(camera, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 /u);
    await eventually('it is taken', () => taken.includes('<blank/>'));
  });

  it('answers a request with another expectation as any invalid one, and closes the connection', async () => {
    const sent = request(url, { method: 'POST', agent: false, headers: { Expect: 'the unexpected' } });
    sent.end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    response.resume();
    expect([response.statusCode, response.headers.connection]).toEqual([404, 'close']);
  });

  it('holds 16 connections of one address and cuts further ones, while other addresses are served', async () => {
    const held = await hold('127.0.0.2', 16);
    expect(held).toHaveLength(16);
    await expect(post('127.0.0.2', '<a/>')).rejects.toThrow(/hang up|ECONNRESET/u);
    expect(await post('127.0.0.3', '<b/>')).toBe(200);
    expect(taken).not.toContain('<a/>');
    held[0]?.destroy();
    await eventually('a connection that ended makes room', async () => {
      return post('127.0.0.2', '<c/>').then(
        (status) => status === 200,
        () => false,
      );
    });
  });

  it('serves a camera while hosts of any number of addresses hold 128 connections: the oldest is closed', async () => {
    const held: Socket[] = [];
    for (let host = 2; host < 10; host += 1) held.push(...(await hold(`127.0.0.${host}`, 16)));
    // Each of the eight hosts has been joined by one more connection, of `hold`: so many of the oldest are gone.
    await eventually('the oldest connections were cut', () => held.some(isCut));
    expect(held.slice(-64).filter(isCut)).toEqual([]);
    for (let call = 0; call < 3; call += 1) expect(await post('127.0.0.50', `<call-${call}/>`)).toBe(200);
    await eventually('its messages are taken', () => taken.includes('<call-2/>'));
  });

  it('keeps a call of a camera that is under way while others fill the places', async () => {
    const camera = connect({ port: Number(url.port), host: url.hostname, localAddress: '127.0.0.50' });
    sockets.push(camera);
    camera.write(`POST ${url.pathname} HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n<d`);
    await hold('127.0.0.51', 1);
    for (let host = 2; host < 14; host += 1) await hold(`127.0.0.${host}`, 16);
    camera.write('one/');
    await eventually('its message is taken', () => taken.includes('<done/'));
  });
});
