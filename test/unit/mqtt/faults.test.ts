import { createServer as createPlain } from 'node:net';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer as createTls, type TlsOptions } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { plainFault } from '../../../src/mqtt/faults.ts';
import { openTransport } from '../../../src/mqtt/socket.ts';
import { makeCertificates, makeChain, type Certificates } from '../../support/certificates.ts';
import { peerMissing } from '../../support/peers.ts';
import { withDirectory } from '../../support/temporary.ts';

/** What the attempt to speak TLS with a server fails with. */
async function faultAt(server: ReturnType<typeof createPlain>, ca: string): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const endpoint = { url: `mqtts://localhost:${port}`, ca, cert: undefined, key: undefined };
  try {
    const { stream } = await openTransport(endpoint, new AbortController().signal);
    // With TLS 1.3 a server refuses a client certificate after the handshake.
    return await new Promise((resolve, reject) => {
      stream.on('error', (error) => resolve(plainFault(error)));
      stream.on('close', () => reject(new Error('closed without an error')));
      stream.resume().write('\u0010\u0000');
    });
  } catch (error) {
    if (error instanceof Error) return plainFault(error);
    throw error;
  } finally {
    server.close();
  }
}

describe.skipIf(peerMissing('openssl'))('a TLS handshake that fails', () => {
  const tls = async (made: Certificates, options: TlsOptions, pair = made.server) =>
    createTls({ cert: await readFile(pair.cert), key: await readFile(pair.key), ...options }, (socket) =>
      socket.on('error', () => undefined),
    );

  it('is described in plain words, without the text of a library', async () => {
    await withDirectory(async (dir) => {
      await withDirectory(async (elsewhere) => {
        const made = await makeCertificates(dir, 'kit');
        const other = await makeCertificates(elsewhere, 'kit');
        const ca = await readFile(made.ca, 'utf8');
        const faults = [
          await faultAt(await tls(made, {}), await readFile(other.ca, 'utf8')),
          await faultAt(await tls(made, {}, made.expired), ca),
          await faultAt(await tls(made, { requestCert: true, rejectUnauthorized: true, ca }), ca),
          await faultAt(
            await tls(made, { maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' }),
            ca,
          ),
          await faultAt(
            createPlain((socket) =>
              socket.on('error', () => undefined).end('HTTP/1.1 400 Bad Request\r\n\r\n'),
            ),
            ca,
          ),
        ];
        expect(faults.map((fault) => fault.split(';')[0])).toEqual([
          'the authority that signed the certificate of the broker is not trusted',
          'the certificate of the broker, or of an authority of it, has expired',
          expect.stringMatching(/client certificate/),
          'the broker does not offer TLS 1.2 or later',
          'the port does not use TLS',
        ]);
        expect(faults.join()).not.toMatch(/SSL routines|use-system-ca|node_modules/);
      });
    });
  });

  it('does not fail with a file of intermediate authorities alone', async () => {
    await withDirectory(async (dir) => {
      const { intermediate, server } = await makeChain(dir, { root: 2, intermediate: 2, server: 2 });
      const [cert, key, ca] = await Promise.all(
        [server.cert, server.key, intermediate].map(async (file) => readFile(file, 'utf8')),
      );
      const broker = createTls({ cert, key }, (socket) => socket.end());
      broker.listen(0, '127.0.0.1');
      await once(broker, 'listening');
      const address = broker.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      const endpoint = { url: `mqtts://localhost:${port}`, ca, cert: undefined, key: undefined };
      const { stream } = await openTransport(endpoint, new AbortController().signal);
      expect(stream.destroyed).toBe(false);
      stream.destroy();
      broker.close();
    });
  });

  it.each([
    ['EINVAL', 'discards what is sent to the broker'],
    ['EACCES', 'prohibits the address of the broker'],
    ['EPERM', 'the firewall of this machine'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'not trusted'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'self-signed'],
    ['UNABLE_TO_GET_ISSUER_CERT', 'not trusted'],
    ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'not trusted'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'send its whole chain (fullchain.pem)'],
    ['CERT_HAS_EXPIRED', 'has expired'],
    ['CERT_NOT_YET_VALID', 'not valid yet'],
    ['CERT_SIGNATURE_FAILURE', 'forged or damaged'],
    ['CERT_REVOKED', 'was revoked'],
    ['CA_MD_TOO_WEAK', 'too weak'],
    ['EE_KEY_TOO_SMALL', 'too small'],
    ['CA_KEY_TOO_SMALL', 'too small'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'for another name'],
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'broker.cert_file and broker.key_file'],
    ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', 'does not accept the certificate of this kit, whose authority'],
    ['ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_EXPIRED', 'or that of its authority, as expired'],
    ['ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE', 'does not accept the certificate of this kit'],
    ['ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED', 'does not accept the certificate of this kit'],
    ['ERR_SSL_SSLV3_ALERT_CERTIFICATE_REVOKED', 'does not accept the certificate of this kit'],
    ['ERR_SSL_TLSV1_ALERT_ACCESS_DENIED', 'does not accept the certificate of this kit'],
    ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', 'TLS 1.2 or later'],
    ['ERR_SSL_UNSUPPORTED_PROTOCOL', 'TLS 1.2 or later'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'does not use TLS'],
    ['ERR_SSL_HTTP_REQUEST', 'does not use TLS'],
    ['ERR_SSL_DH_KEY_TOO_SMALL', 'too weak'],
    ['ERR_SSL_CA_MD_TOO_WEAK', 'too weak'],
  ])('with %s reports what is wrong and what to do', (code, words) => {
    const raw = Object.assign(new Error(`0A00:error:SSL routines:${code}`), { code });
    expect(plainFault(raw)).toContain(words);
    expect(plainFault(raw)).not.toContain('SSL routines');
  });

  it.each(['EINVAL', 'ECONNREFUSED', 'EAI_FAIL'])(
    'does not take %s of a resolver for that of a connection',
    (code) => {
      const failed = Object.assign(new Error(`getaddrinfo ${code} broker`), { code, syscall: 'getaddrinfo' });
      expect(plainFault(failed)).toContain('name server');
    },
  );

  it('keeps the message of unknown errors, unless it is raw text of OpenSSL', () => {
    expect(plainFault(new Error('no answer to a ping for 15.0 s'))).toBe('no answer to a ping for 15.0 s');
    const raw = Object.assign(new Error('403DE2:error:0A00FFFF:SSL routines:tls_x:odd'), {
      code: 'ERR_SSL_ODD',
    });
    expect(plainFault(raw)).toBe('the TLS handshake with the broker failed (ERR_SSL_ODD)');
  });
});
