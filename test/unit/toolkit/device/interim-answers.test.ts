/** A server that sends interim answers (status 1xx) without end, which no limit on the size of a reply counts, or one that changes the protocol. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkHttp } from '../../../../drivers/links/checks/checker.ts';
import { agentFor, exchange } from '../../../../drivers/onvif/soap/transport.ts';
import { openWebChannel } from '../../../../drivers/starlink/api/grpc-web.ts';
import { pinnedHttp } from '../../../../src/toolkit/device/pinned-http.ts';
import { askApi } from '../../../../src/kit/media/api-request.ts';
import { texts } from '../../../../src/platform/texts.ts';

const flood = Buffer.from('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(1_000));
const { signal } = new AbortController();
/** Longer than the test may take: nothing but the limit ends a request. */
const timeout_ms = 600_000;

let server: Server;
let port = 0;
let isFlood = true;
const sockets = new Set<Socket>();
beforeAll(async () => {
  server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    const more = (): void => {
      while (!socket.destroyed && socket.write(flood));
    };
    socket.on('drain', more);
    socket.once('data', () => {
      if (isFlood) more();
      else socket.write('HTTP/1.1 101 Other\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nx');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
});
afterAll(() => {
  for (const socket of sockets) socket.destroy();
  server.close();
});

const clients: Readonly<Record<string, () => Promise<unknown>>> = {
  async onvif() {
    const agent = agentFor({ secure: false, fingerprint: undefined, legacy_tls: false });
    const url = new URL(`http://127.0.0.1:${port}/`);
    const about = { bytes_max: 1_000, headers: {}, fingerprint: undefined };
    return exchange({ url, method: 'GET', body: '', agent, signal, ...about });
  },
  async starlink() {
    const socketTo = async (): Promise<Socket> => {
      const socket = connect(port, '127.0.0.1');
      await once(socket, 'connect');
      return socket;
    };
    return openWebChannel({ connect: socketTo, timeout_ms, signal }).call('/', Buffer.alloc(0));
  },
  async links() {
    const url = new URL(`http://127.0.0.1:${port}/`);
    const check = { kind: 'http', url, status: 204, body: null, ip: '127.0.0.1', resolver: null } as const;
    throw new Error(String(await checkHttp(check, { device: 'lo', families: [4], timeout_ms, signal })));
  },
  async 'the cameras and radios of vendors'() {
    const options = { host: '127.0.0.1', port, tls: false, connect_ms: timeout_ms, reply_bytes_max: 1_000 };
    const http = pinnedHttp({ ...options, check: async () => undefined, refused_remedy: '' });
    return http.get('/', { deadline_ms: timeout_ms }).finally(http.close);
  },
  'the media server': async () =>
    askApi({ api_url: `http://127.0.0.1:${port}` }, { method: 'GET', path: '/', signal }),
};

describe.each(Object.entries(clients))('a server of %s', (_, ask) => {
  it.each([
    ['interim answers without end', true, texts.interim_answers],
    ['another protocol', false, texts.other_protocol],
  ])('that sends %s has its request ended, with the reason', async (__, floods, reason) => {
    isFlood = floods;
    await expect(ask()).rejects.toThrow(reason);
  });
});
