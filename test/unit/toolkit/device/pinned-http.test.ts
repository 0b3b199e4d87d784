import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createTcpServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { texts } from '../../../../src/toolkit/device/texts.ts';
import { DeviceRejected, DeviceUnreachable } from '../../../../src/platform/errors.ts';
import {
  pinnedHttp,
  type PinnedHttp,
  type PinnedHttpParts,
} from '../../../../src/toolkit/device/pinned-http.ts';
import { makeCertificates } from '../../../support/certificates.ts';
import { eventually } from '../../../support/eventually.ts';
import { makeDirectory } from '../../../support/temporary.ts';

interface Pem {
  readonly cert: string;
  readonly key: string;
}
let first: Pem;
let other: Pem;
beforeAll(async () => {
  const made = await makeCertificates(await makeDirectory(), 'nobody');
  const read = async ({ cert, key }: Pem): Promise<Pem> => {
    return { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') };
  };
  first = await read(made.server);
  other = await read(made.expired);
});

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end();
});

const limits = { deadline_ms: 10_000 };
const trustAll = async (): Promise<void> => undefined;
const echo = (request: IncomingMessage, response: ServerResponse): void => {
  request.pipe(response);
};

/** What a device has seen of us. */
interface Device {
  readonly port: number;
  requests: number;
  connections: number;
  readonly sockets: Set<Socket>;
  readonly off: () => Promise<void>;
}

async function listen(server: Server, port = 0): Promise<Device> {
  const sockets = new Set<Socket>();
  const off = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    if (!server.listening) return;
    server.close();
    await once(server, 'close');
  };
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const device = { port: (server.address() as AddressInfo).port, requests: 0, connections: 0, sockets, off };
  server.on('connection', (socket: Socket) => {
    device.connections += 1;
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('request', () => {
    device.requests += 1;
  });
  endings.push(off);
  return device;
}

function client(port: number, more: Partial<PinnedHttpParts> = {}): PinnedHttp {
  const http = pinnedHttp({
    host: '127.0.0.1',
    port,
    tls: false,
    check: trustAll,
    connect_ms: 10_000,
    reply_bytes_max: 1_000,
    refused_remedy: 'switch it on',
    ...more,
  });
  endings.push(() => http.close());
  return http;
}

const failureOf = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('the certificate', () => {
  it('is checked once, before anything is sent, and the connection is kept', async () => {
    const device = await listen(createTlsServer(first, echo));
    const permission = Promise.withResolvers<void>();
    const seen: string[] = [];
    const http = client(device.port, {
      tls: true,
      check: async (fingerprint) => {
        seen.push(fingerprint);
        await permission.promise;
      },
    });
    const answer = http.post('/', 'password', limits);
    await eventually('the certificate is shown', () => seen.length === 1);
    expect(device.requests).toBe(0);
    permission.resolve();
    await expect(answer).resolves.toMatchObject({ status: 200, text: 'password' });
    await expect(http.post('/', 'again', limits)).resolves.toMatchObject({ status: 200, text: 'again' });
    expect(seen).toEqual([expect.stringMatching(/^(?:[0-9A-F]{2}:){31}[0-9A-F]{2}$/u)]);
    expect(device).toMatchObject({ requests: 2, connections: 1 });
  });

  it('never gets the password when it changed, and the error of the check comes through', async () => {
    const device = await listen(createTlsServer(first, echo));
    let pinned: string | undefined;
    const http = client(device.port, {
      tls: true,
      check: async (fingerprint) => {
        pinned ??= fingerprint;
        if (pinned !== fingerprint) throw new DeviceRejected('presents another certificate');
      },
    });
    await http.post('/', 'password', limits);
    await device.off();
    expect(await failureOf(http.post('/', 'password', limits))).toBeInstanceOf(DeviceUnreachable);
    const impostor = await listen(createTlsServer(other, echo), device.port);
    const error = await failureOf(http.post('/', 'password', limits));
    expect(error).toEqual(new DeviceRejected('presents another certificate'));
    expect(error).toBeInstanceOf(DeviceRejected);
    expect(impostor).toMatchObject({ requests: 0, connections: 1 });
  });
});

describe('a request', () => {
  it('ends at its deadline without an answer', async () => {
    const device = await listen(createServer(() => undefined));
    const error = await failureOf(client(device.port).post('/', '', { deadline_ms: 100 }));
    expect(error).toEqual(new DeviceUnreachable(texts.answer_timeout(0.1)));
    await eventually('its connection is gone', () => device.sockets.size === 0);
  });

  it('whose reply drips ends at its deadline too', async () => {
    const server = createServer((_request, response) => {
      const drip = setInterval(() => response.write('.'), 20);
      response.once('close', () => clearInterval(drip));
    });
    const device = await listen(server);
    const error = await failureOf(client(device.port).post('/', '', { deadline_ms: 200 }));
    expect(error).toEqual(new DeviceUnreachable(texts.answer_timeout(0.2)));
    await eventually('its connection is gone', () => device.sockets.size === 0);
  });

  it('times out when the device never answers the TLS handshake', async () => {
    const device = await listen(createTcpServer(() => undefined));
    const error = await failureOf(
      client(device.port, { tls: true, connect_ms: 100 }).post('/', 'password', limits),
    );
    expect(error).toEqual(new DeviceUnreachable(texts.connection_closed));
  });

  it.each([
    [1_000, { status: 200, text: 'x'.repeat(1_000) }],
    [1_001, new DeviceUnreachable('its reply is larger than 1000 bytes')],
  ])('may be answered with 1000 bytes: %d', async (size, expected) => {
    const device = await listen(createServer((_request, response) => void response.end('x'.repeat(size))));
    const answer = client(device.port).post('/', '', limits);
    expect(
      await answer.then(
        ({ status, text }) => ({ status, text }),
        (error: unknown) => error,
      ),
    ).toEqual(expected);
  });

  it('rejects with the reason of its signal, and the next request succeeds', async () => {
    let isMute = true;
    const server = createServer((request, response) => {
      if (!isMute) echo(request, response);
    });
    const device = await listen(server);
    const http = client(device.port);
    const stop = new AbortController();
    const failure = failureOf(http.post('/', '', { ...limits, signal: stop.signal }));
    await eventually('it is under way', () => device.requests === 1);
    const reason = new DeviceUnreachable('made room');
    stop.abort(reason);
    expect(await failure).toBe(reason);
    expect(await failureOf(http.post('/', '', { ...limits, signal: stop.signal }))).toBe(reason);
    expect(device.requests).toBe(1);
    isMute = false;
    await expect(http.post('/', 'next', limits)).resolves.toMatchObject({ status: 200, text: 'next' });
  });

  it('ends when the client is closed, and nothing is sent afterwards', async () => {
    const device = await listen(createServer(() => undefined));
    const http = client(device.port);
    const failure = failureOf(http.post('/', '', limits));
    await eventually('it is under way', () => device.requests === 1);
    http.close();
    expect(await failure).toEqual(new DeviceUnreachable(texts.stopping));
    expect(await failureOf(http.post('/', '', limits))).toEqual(new DeviceUnreachable(texts.stopping));
    expect(device.requests).toBe(1);
    await eventually('its connection is gone', () => device.sockets.size === 0);
  });

  it('ends when the client is closed while the certificate is looked at', async () => {
    const device = await listen(createTlsServer(first, echo));
    let isShown = false;
    const http = client(device.port, {
      tls: true,
      check: async () => {
        isShown = true;
        await Promise.withResolvers<void>().promise;
      },
    });
    const failure = failureOf(http.post('/', 'password', limits));
    await eventually('the certificate is shown', () => isShown);
    http.close();
    expect(await failure).toBeInstanceOf(DeviceUnreachable);
    await eventually('its connection is gone', () => device.sockets.size === 0);
    expect(device.requests).toBe(0);
  });
});

describe('what goes wrong', () => {
  it('has a sentence with the remedy where nothing listens', async () => {
    const device = await listen(createServer(echo));
    await device.off();
    const error = await failureOf(client(device.port).post('/', '', limits));
    expect(error).toMatchObject({
      name: 'DeviceUnreachable',
      message: texts.connection_refused('switch it on'),
    });
  });

  it('has a sentence for a port without TLS', async () => {
    const device = await listen(createServer(echo));
    const error = await failureOf(client(device.port, { tls: true }).post('/', 'password', limits));
    expect(error).toMatchObject({
      name: 'DeviceUnreachable',
      message: texts.not_tls,
    });
    expect(device.requests).toBe(0);
  });

  // A device that asks for a certificate, or whose ciphers are too old, does use TLS.
  it('tells a handshake that fails for another reason as it failed', async () => {
    const alert = Buffer.from([0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x28]);
    const device = await listen(createTcpServer((socket) => socket.once('data', () => socket.end(alert))));
    const error = await failureOf(client(device.port, { tls: true }).post('/', 'password', limits));
    expect(String(error)).toMatch(/: the TLS handshake failed \(ERR_SSL_\S*HANDSHAKE_FAILURE\)$/u);
  });

  it.each([
    ['before the answer', ''],
    ['within the answer', 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf'],
  ])('has a sentence where the connection ends %s', async (_when, words) => {
    const server = createTcpServer((socket) => {
      socket.once('data', () => socket.end(words));
    });
    const device = await listen(server);
    const error = await failureOf(client(device.port).post('/', '', limits));
    expect(error).toMatchObject({ name: 'DeviceUnreachable', message: texts.connection_closed });
  });
});
