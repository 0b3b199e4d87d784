/** Certificates for TLS tests, made at run time so that none is stored and none grows old. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './temporary.ts';

/** Paths of PEM files. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface Certificates {
  readonly ca: string;
  /** For localhost, 127.0.0.1 and 198.18.0.1. */
  readonly server: KeyPair;
  /** The server's, expired since yesterday. */
  readonly expired: KeyPair;
  /** Its common name is the user name that was asked for. */
  readonly client: KeyPair;
  /** One more for another user. */
  readonly clientOf: (name: string) => Promise<KeyPair>;
}

const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

/** Makes an authority and the certificates it signs, in `dir`. */
export async function makeCertificates(dir: string, client_name: string): Promise<Certificates> {
  const ca = join(dir, 'ca.crt');
  const ca_key = join(dir, 'ca.key');
  const authority = ['-subj', '/CN=test authority', '-days', '2'];
  await run('openssl', 'req', '-x509', ...curve, '-keyout', ca_key, '-out', ca, ...authority);
  const sign = async (name: string, subject: string, days: number): Promise<KeyPair> => {
    const [cert, key, request, extensions] = ['crt', 'key', 'csr', 'ext'].map((end) =>
      join(dir, `${name}.${end}`),
    );
    if (!cert || !key || !request || !extensions) throw new Error('a path is missing');
    await writeFile(extensions, 'subjectAltName=DNS:localhost,IP:127.0.0.1,IP:198.18.0.1\n');
    await run('openssl', 'req', ...curve, '-keyout', key, '-out', request, '-subj', `/CN=${subject}`);
    const signer = [
      '-CA',
      ca,
      '-CAkey',
      ca_key,
      '-CAcreateserial',
      '-days',
      String(days),
      '-extfile',
      extensions,
    ];
    await run('openssl', 'x509', '-req', '-in', request, '-out', cert, ...signer);
    return { cert, key };
  };
  return {
    ca,
    server: await sign('server', 'localhost', 2),
    expired: await sign('expired', 'localhost', -1),
    client: await sign('client', client_name, 2),
    clientOf: async (name) => sign(name, name, 2),
  };
}

/** Paths of PEM files, each certificate signed by the one before it. */
export interface Chain {
  readonly root: string;
  readonly intermediate: string;
  /** For localhost. */
  readonly server: KeyPair;
}

/** A chain of three, which end after so many days; below 0: before now. */
export async function makeChain(dir: string, days: Readonly<Record<keyof Chain, number>>): Promise<Chain> {
  let signer: readonly string[] = [];
  const sign = async (name: keyof Chain): Promise<KeyPair> => {
    const at = (end: string): string => join(dir, `${name}.${end}`);
    const subject = name === 'server' ? 'subjectAltName=DNS:localhost' : 'basicConstraints=critical,CA:true';
    await writeFile(at('ext'), subject);
    await run(
      'openssl',
      'req',
      ...curve,
      '-keyout',
      at('key'),
      '-out',
      at('csr'),
      '-subj',
      `/CN=the ${name}`,
    );
    const by = signer.length === 0 ? ['-signkey', at('key')] : signer;
    const end = ['-days', String(days[name]), '-extfile', at('ext')];
    await run('openssl', 'x509', '-req', '-in', at('csr'), '-out', at('crt'), ...by, ...end);
    signer = ['-CA', at('crt'), '-CAkey', at('key'), '-CAcreateserial'];
    return { cert: at('crt'), key: at('key') };
  };
  const root = await sign('root');
  const intermediate = await sign('intermediate');
  return { root: root.cert, intermediate: intermediate.cert, server: await sign('server') };
}
