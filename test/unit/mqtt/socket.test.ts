import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:tls';
import { expect, it } from 'vitest';
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
