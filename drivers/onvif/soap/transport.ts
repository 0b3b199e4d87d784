/** One HTTP exchange with a camera: bounded in time and size, after a certificate check. */
import { Agent, type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http';
import { Agent as SecureAgent, request as httpsRequest } from 'node:https';
import { TLSSocket } from 'node:tls';
import { bareFingerprint } from '../../../src/device/certificate-check.ts';
import {
  contextWithoutAuthorities,
  isLegacyTls,
  legacy_tls_settings,
} from '../../../src/device/pinned-http.ts';
import { texts as device_texts } from '../../../src/device/texts.ts';
import type { Connection } from './soap-call.ts';
import { reply_bytes_max } from './xml.ts';

export interface Posted {
  readonly status: number;
  readonly text: string;
  /** `WWW-Authenticate`, one entry for each header. */
  readonly challenges: readonly string[];
  readonly local_address: string | undefined;
  readonly peer_address: string | undefined;
}

/** The certificate is not the expected one; nothing was sent. */
export class CertificateRefused extends Error {
  override readonly name = 'CertificateRefused';
}

/** The answer exceeds the size limit. */
export class ReplyRefused extends Error {
  override readonly name = 'ReplyRefused';
}

export interface Post {
  readonly url: URL;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly agent: Agent;
  readonly fingerprint: string | undefined;
  /** Aborts at the deadline of the whole exchange, however slowly bytes come. */
  readonly signal: AbortSignal;
}

/** Requests that one camera serves at once: a pull, a command and its stop, a renewal. */
const sockets_max = 4;

/**
 * A connection for each request: the small HTTP servers of cameras close idle ones, which cannot be distinguished
 * from failures. TLS sessions are not resumed either, since a resumed one has no certificate to compare.
 */
export function agentFor({
  secure,
  fingerprint,
  legacy_tls = false,
}: Pick<Connection, 'secure' | 'fingerprint' | 'legacy_tls'>): Agent {
  const settings = { keepAlive: false, maxSockets: sockets_max };
  if (!secure) return new Agent(settings);
  const own = legacy_tls ? legacy_tls_settings : {};
  const context =
    fingerprint === undefined ? own : { secureContext: contextWithoutAuthorities({ legacy_tls }) };
  return new SecureAgent({ ...settings, maxCachedSessions: 0, ...context });
}

export async function post(what: Post): Promise<Posted> {
  const { promise, resolve, reject } = Promise.withResolvers<Posted>();
  const settings = { method: 'POST', agent: what.agent, signal: what.signal, headers: headersOf(what) };
  const isSecure = what.url.protocol === 'https:';
  const request = isSecure
    ? httpsRequest(what.url, { ...settings, rejectUnauthorized: what.fingerprint === undefined })
    : httpRequest(what.url, settings);
  request.on('error', (error) => reject(explain(error, what)));
  // In every state of the exchange: not each of them ends with an event.
  what.signal.addEventListener('abort', () => reject(new Error('cancelled')), { once: true });
  request.on('response', (response) => collect(request, response, { resolve, reject }));
  if (isSecure && what.fingerprint !== undefined) sendOnceTrusted(request, what, what.fingerprint);
  else request.end(what.body);
  return promise;
}

function headersOf({ body, headers }: Post): Record<string, string | number> {
  return { ...headers, 'Content-Length': Buffer.byteLength(body), Connection: 'close' };
}

/** Compares the certificate before a byte of the request is sent: its head may contain a login. */
function sendOnceTrusted(request: ClientRequest, { body }: Post, fingerprint: string): void {
  request.once('socket', (socket) => {
    socket.once('secureConnect', () => {
      const shown = socket instanceof TLSSocket ? socket.getPeerCertificate().fingerprint256 : '';
      const seen = bareFingerprint(shown);
      if (seen === fingerprint) request.end(body);
      else {
        const sentence = `its certificate has the fingerprint ${seen}, not the one in tls.fingerprint`;
        request.destroy(new CertificateRefused(sentence));
      }
    });
  });
}

function collect(
  request: ClientRequest,
  response: IncomingMessage,
  { resolve, reject }: { resolve: (posted: Posted) => void; reject: (error: Error) => void },
): void {
  const chunks: Buffer[] = [];
  const local_address = response.socket.localAddress;
  const peer_address = response.socket.remoteAddress?.replace(/^::ffff:/iu, '');
  let bytes = 0;
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > reply_bytes_max)
      request.destroy(new ReplyRefused(`its reply is larger than ${reply_bytes_max} bytes`));
    else chunks.push(chunk);
  });
  response.on('error', reject);
  response.once('end', () =>
    resolve({
      status: response.statusCode ?? 0,
      text: Buffer.concat(chunks).toString('utf8'),
      challenges: response.headersDistinct['www-authenticate'] ?? [],
      local_address,
      peer_address,
    }),
  );
  // The library never returns when the connection ends in the middle of a reply.
  response.once('close', () => reject(new Error('connection closed in the middle of the reply')));
}

/** Adds the remedy to errors of certificates that no authority signed. */
function explain(error: Error, { url }: Post): Error {
  const code = 'code' in error ? String(error.code) : '';
  if (/CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME/u.test(code)) {
    const how = `openssl s_client -connect ${url.host} </dev/null | openssl x509 -noout -fingerprint -sha256`;
    return new CertificateRefused(
      `its certificate is not trusted (${code}); write its SHA-256 to tls.fingerprint: ${how}`,
    );
  }
  return isLegacyTls(code) ? new Error(device_texts.legacy_tls_only, { cause: error }) : error;
}
