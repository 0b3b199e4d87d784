/** The HTTPS server of the service: checks client certificates if configured, and reloads renewed certificates while it runs. */
import type { IncomingMessage, RequestListener } from 'node:http';
import { createServer, type Server, type ServerOptions } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { messageOf } from '../../../platform/errors.ts';
import { cleanText } from '../../../platform/foreign-text.ts';
import { limitConnections } from '../../../platform/limit-connections.ts';
import { everyInTurn } from '../../../platform/time.ts';
import { KeyedTokenBuckets } from '../../../platform/token-bucket.ts';
import { networkOf } from '../../access/proxies.ts';
import type { ServiceLog } from '../../service-log.ts';
import { texts } from '../../texts.ts';

const handshake_timeout_ms = 10_000;
/** How often the files are read again. Renewals replace links and directories, which a watch of a file would miss. */
const reload_every_ms = 30_000;
/** Limit for log lines on rejected certificates of one network; their content is foreign. */
const logged_rejections = { perSecond: 10 / 60, burst: 10 } as const;
const subject_chars_max = 256;

interface TlsTexts {
  readonly cert: string;
  readonly key: string;
  /** The authority of the clients; undefined: they are not asked for certificates. */
  readonly ca: string | undefined;
}

type TlsRead =
  | { readonly value: TlsTexts; readonly warnings: readonly string[] }
  | { readonly faults: readonly { readonly fault: string }[] };

export interface TlsSource {
  /** What the files hold now: PEM texts that fit together, or what is wrong with them. */
  readonly read: () => Promise<TlsRead>;
  /** Undefined: clients are not asked for certificates. */
  readonly client_certificates: 'required' | 'optional' | undefined;
  /** Left out: 30 s. */
  readonly reload_every_ms?: number;
}

interface SecureParts {
  readonly tls: TlsSource;
  readonly log: ServiceLog;
  readonly signal: AbortSignal;
}

const versions = { minVersion: 'TLSv1.2' } as const;

/** Creates a server that does not listen yet. Rejects when the files hold no valid certificate. */
export async function createSecureServer(
  options: ServerOptions,
  listener: RequestListener<typeof IncomingMessage>,
  parts: SecureParts,
): Promise<Server> {
  const { tls, log } = parts;
  const first = await tls.read();
  if ('faults' in first) throw new Error(faultsOf(first.faults));
  const server = createServer(
    {
      ...options,
      ...versions,
      ...first.value,
      handshakeTimeout: handshake_timeout_ms,
      requestCert: tls.client_certificates !== undefined,
      // Checked below, so that the log can name the rejected client.
      rejectUnauthorized: false,
    },
    listener,
  );
  limitConnections(server, 'secureConnection');
  const limit = new KeyedTokenBuckets(logged_rejections);
  // Runs before the HTTP listener, so that nothing is read from the socket of a rejected client.
  server.prependListener('secureConnection', (socket) => {
    if (socket.destroyed) return;
    const reason = rejectionOf(socket, tls.client_certificates);
    if (reason === undefined) return;
    const address = socket.remoteAddress ?? '';
    if (limit.of(networkOf(address)).take(performance.now())) {
      log.warn({ address, reason, ...nameOf(socket) }, texts.log_client_certificate);
    }
    socket.destroy();
  });
  followFiles(server, first, parts);
  return server;
}

/**
 * Returns why this client is rejected. A resumed session proves nothing: Node marks a session that began without a certificate
 * as authorized, so the certificate itself must be present.
 */
function rejectionOf(socket: TLSSocket, asked: TlsSource['client_certificates']): string | undefined {
  if (asked === undefined) return undefined;
  if (!socket.getPeerX509Certificate()) return asked === 'required' ? texts.no_certificate : undefined;
  return socket.authorized ? undefined : String(socket.authorizationError);
}

/** Returns subject and fingerprint of the certificate. */
function nameOf(socket: TLSSocket): { readonly subject?: string; readonly fingerprint?: string } {
  const certificate = socket.getPeerX509Certificate();
  if (!certificate) return {};
  const subject = cleanText(certificate.subject ?? '').slice(0, subject_chars_max);
  return { subject, fingerprint: certificate.fingerprint256 };
}

/** Reloads the certificate files. The old certificate stays in use while the new files are invalid; open connections keep theirs. */
function followFiles(
  server: Server,
  first: Extract<TlsRead, { readonly value: TlsTexts }>,
  { tls, log, signal }: SecureParts,
): void {
  let current = first.value;
  let logged: ReadonlySet<string> = new Set(first.warnings);
  const logNew = (sentences: readonly string[], sentence: string): void => {
    for (const reason of sentences) if (!logged.has(reason)) log.warn({ reason }, sentence);
    logged = new Set(sentences);
  };
  const reload = async (): Promise<void> => {
    const read = await tls.read();
    if (signal.aborted) return;
    try {
      if ('faults' in read) throw new Error(faultsOf(read.faults));
      if (!isSame(current, read.value)) {
        server.setSecureContext({ ...versions, ...read.value });
        current = read.value;
        log.info({}, texts.log_certificate_renewed);
      }
      logNew(read.warnings, texts.log_certificate_warning);
    } catch (error) {
      logNew([messageOf(error)], texts.log_certificate_rejected);
    }
  };
  everyInTurn(tls.reload_every_ms ?? reload_every_ms, signal, reload);
}

function isSame(one: TlsTexts, other: TlsTexts): boolean {
  return one.cert === other.cert && one.key === other.key && one.ca === other.ca;
}

function faultsOf(faults: readonly { readonly fault: string }[]): string {
  return faults.map(({ fault }) => fault).join('; ');
}
