import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer as createTcp, type Server } from 'node:net';
import tls, { createServer } from 'node:tls';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { BrokerAddresses } from '../../../src/mqtt/broker-addresses.ts';
import { openTransport } from '../../../src/mqtt/socket.ts';
import { segments } from '../../../src/platform/linux/tcp-info.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { withDirectory } from '../../support/temporary.ts';

const ip = '127.0.0.1';

it.each(['localhost', ip])(
  'a socket that was made already carries TLS to %s, and reports that it is refused',
  async (host) => {
    await withDirectory(async (dir) => {
      const { ca, server: files } = await makeCertificates(dir, 'kit');
      const read = (path: string): string => readFileSync(path, 'utf8');
      const server = createServer({ cert: read(files.cert), key: read(files.key) }, (socket) => {
        socket.on('error', () => undefined).pipe(socket);
      }).listen(0, ip);
      await once(server, 'listening');
      const address = server.address();
      const url = `mqtts://${host}:${typeof address === 'object' && address !== null ? address.port : 0}`;
      const { openSmall } = await segments();
      const never = async (): Promise<never> => Promise.reject(new Error('asked'));
      const addresses = new BrokerAddresses({ system: never, servers: never });
      const endpoint = { url, ca: read(ca), cert: undefined, key: undefined };
      const open = async () =>
        openTransport(endpoint, new AbortController().signal, {
          addresses,
          own: { fd: openSmall(ip), ip },
        });
      const { stream, tcp } = await open();
      expect(tcp?.remoteAddress).toBe(ip);
      stream.write('x'.repeat(5_000));
      await once(stream, 'data');
      stream.destroy();
      server.close();
      await expect(open()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    });
  },
);

// Of the process, which other files have changed.
beforeEach(() => (tls.DEFAULT_ECDH_CURVE = 'auto'));
afterEach(() => (tls.DEFAULT_ECDH_CURVE = 'auto'));

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

// Sources beside `offerOtherGroups`.
it.each([
  { how: 'ends', attempts: 1 },
  { how: 'loses', attempts: 2 },
])('passes a filter that $how what begins with more than a packet', async ({ how, attempts }) => {
  await withDirectory(async (dir) => {
    const { ca, server: files } = await makeCertificates(dir, 'kit');
    const read = (path: string): string => readFileSync(path, 'utf8');
    const broker = createServer({ cert: read(files.cert), key: read(files.key) }, (socket) => {
      socket.on('error', () => undefined).pipe(socket);
    }).listen(0, ip);
    await once(broker, 'listening');
    const filter = createTcp((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', (first: Buffer) => {
        const isLarge = first.readUInt16BE(3) > 1_400;
        if (isLarge && how === 'ends') socket.resetAndDestroy();
        if (isLarge) return;
        const beyond = connect(portOf(broker), ip);
        beyond.write(first);
        socket
          .pipe(beyond)
          .on('error', () => undefined)
          .pipe(socket);
      });
    }).listen(0, ip);
    await once(filter, 'listening');
    const endpoint = {
      url: `mqtts://localhost:${portOf(filter)}`,
      ca: read(ca),
      cert: undefined,
      key: undefined,
    };
    for (let attempt = 1; attempt < attempts; attempt += 1)
      await expect(openTransport(endpoint, AbortSignal.timeout(200))).rejects.toThrow('aborted');
    const { stream } = await openTransport(endpoint, new AbortController().signal);
    stream.write('x');
    await once(stream, 'data');
    stream.destroy();
    filter.close();
    broker.close();
  });
});
