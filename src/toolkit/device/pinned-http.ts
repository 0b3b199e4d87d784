/** Posts to one device over one kept HTTP or HTTPS connection, whose certificate is checked before anything is sent. */
import {
  Agent as HttpAgent,
  type ClientRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request as httpRequest,
  type RequestOptions,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import { connect, createSecureContext, type SecureContext, type TLSSocket } from 'node:tls';
import { urlHost } from '../driver/device-address.ts';
import { DeviceUnreachable, messageOf } from '../../platform/errors.ts';
import { gather } from '../../platform/gathered-bytes.ts';
import { limitInterimAnswers } from '../../platform/interim-answers.ts';
import { connectionFault } from './connection-fault.ts';
import type { DeviceName } from './device-name.ts';
import { texts } from './texts.ts';
import { deadline } from '../../platform/time.ts';

/** Resolves when the certificate with this SHA-256 fingerprint may be trusted; rejects otherwise. */
export type CheckCertificate = (fingerprint: string) => Promise<void>;

export interface PinnedHttpParts {
  readonly host: string;
  /** Of `host`; left out, the resolver of the operating system. */
  readonly name?: Pick<DeviceName, 'lookup' | 'reached'>;
  readonly port: number;
  readonly tls: boolean;
  /** TLS 1.0 and 1.1 are accepted too, where the configuration allows them. */
  readonly legacy_tls?: boolean;
  readonly check: CheckCertificate;
  readonly connect_ms: number;
  readonly reply_bytes_max: number;
  /** What the technician can do when nothing listens; appended to `refuses the connection; `. */
  readonly refused_remedy: string;
}

export interface HttpReply {
  readonly status: number;
  readonly bytes: Buffer;
  /** The bytes as UTF-8; bytes that are not become replacement characters. */
  readonly text: string;
  /** `Content-Type`. */
  readonly type: string | undefined;
  /** `Set-Cookie`, each with its name first. */
  readonly cookies: readonly string[];
  /** `Location`. */
  readonly location: string | undefined;
}

interface RequestLimits {
  /** Deadline of the whole exchange, also for a reply that arrives slowly. */
  readonly deadline_ms: number;
  /** Ends the request, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

export interface PinnedHttp {
  /**
   * Posts JSON. Resolves with any HTTP status. Rejects with DeviceUnreachable, with the error of the certificate check, or
   * with the reason of the signal.
   */
  readonly post: (path: string, body: string, limits: RequestLimits) => Promise<HttpReply>;
  /** The same without a body. */
  readonly get: (path: string, limits: RequestLimits) => Promise<HttpReply>;
  /** Ends every request and connection, for good. */
  readonly close: () => void;
}

type Sent = Pick<RequestOptions, 'path' | 'method'> & { readonly headers?: OutgoingHttpHeaders };

/** Sends one request at a time. Devices sign their certificates themselves, so that only `check` detects an impostor. */
export function pinnedHttp(parts: PinnedHttpParts): PinnedHttp {
  const { host, name, port, tls, reply_bytes_max, refused_remedy } = parts;
  const lookup = name?.lookup;
  const agent = tls ? new PinnedAgent(parts) : new HttpAgent({ keepAlive: true, maxSockets: 1 });
  const requests = new Set<ClientRequest>();
  let isClosed = false;
  const send = async (what: Sent, body: string, limits: RequestLimits): Promise<HttpReply> => {
    if (isClosed) throw new DeviceUnreachable(texts.stopping);
    limits.signal?.throwIfAborted();
    const options = {
      host,
      port,
      lookup,
      agent,
      ...what,
      headers: { ...headersFor(host, port), ...what.headers },
    };
    const request = tls ? httpsRequest(options) : httpRequest(options);
    limitInterimAnswers(request);
    request.once('response', ({ socket }) => name?.reached(socket.remoteAddress));
    requests.add(request);
    request.once('close', () => requests.delete(request));
    try {
      return await exchange(request, body, { ...limits, reply_bytes_max });
    } catch (error) {
      throw unreachable(error, refused_remedy);
    }
  };
  return {
    async post(path, body, limits) {
      const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
      return send({ path, method: 'POST', headers }, body, limits);
    },
    get: async (path, limits) => send({ path, method: 'GET' }, '', limits),
    close() {
      isClosed = true;
      for (const request of requests) request.destroy(new DeviceUnreachable(texts.stopping));
      agent.destroy();
    },
  };
}

/** The zone of an address counts on this machine alone: servers refuse it. */
function headersFor(host: string, port: number): OutgoingHttpHeaders {
  return host.includes('%') ? { host: `${urlHost(host)}:${port}` } : {};
}

async function exchange(
  request: ClientRequest,
  body: string,
  { deadline_ms, signal, reply_bytes_max }: RequestLimits & Pick<PinnedHttpParts, 'reply_bytes_max'>,
): Promise<HttpReply> {
  const done = Promise.withResolvers<HttpReply>();
  const end = (error: Error): void => {
    done.reject(error);
    request.destroy();
  };
  const onAbort = (): void => end(errorOf(signal?.reason));
  const cancel = deadline(deadline_ms, () =>
    end(new DeviceUnreachable(texts.answer_timeout(deadline_ms / 1_000))),
  );
  signal?.addEventListener('abort', onAbort, { once: true });
  let isAnswered = false;
  // Kept until the end: errors may occur after the promise is settled.
  request.on('error', done.reject);
  request.once('close', () => {
    // Reading the reply ends after this event and has its own error.
    if (!isAnswered) done.reject(new DeviceUnreachable(texts.connection_closed));
  });
  request.once('response', (response) => {
    isAnswered = true;
    readBytes(response, reply_bytes_max).then(
      (bytes) => done.resolve(replyOf(response, bytes)),
      (error: unknown) => end(errorOf(error)),
    );
  });
  request.end(body);
  try {
    return await done.promise;
  } finally {
    cancel();
    signal?.removeEventListener('abort', onAbort);
  }
}

function replyOf({ statusCode = 0, headers }: IncomingMessage, bytes: Buffer): HttpReply {
  const { 'content-type': type, 'set-cookie': cookies = [], location } = headers;
  return { status: statusCode, bytes, text: bytes.toString('utf8'), type, cookies, location };
}

async function readBytes(response: IncomingMessage, bytes_max: number): Promise<Buffer> {
  const reply = await gather(response, bytes_max);
  if (!reply) throw new DeviceUnreachable(texts.reply_too_large(bytes_max));
  return reply;
}

/** Converts an error of a connection to a device into one of the connector's. */
export function unreachable(error: unknown, refused_remedy: string): Error {
  const fault = connectionFault(error, refused_remedy);
  if (fault !== undefined) return new DeviceUnreachable(fault, { cause: error });
  return error instanceof Error && error.constructor !== Error
    ? error
    : new DeviceUnreachable(messageOf(error), { cause: error });
}

function errorOf(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(messageOf(thrown));
}

/** OpenSSL accepts the hashes of TLS 1.0 and 1.1 at this level only. */
export const legacy_tls_settings = { minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;

let without_authorities: SecureContext | undefined;
let legacy: SecureContext | undefined;

/** Trust store without authorities: only the fingerprint counts here, and loading all authorities would take 3 MB. */
export function contextWithoutAuthorities({ legacy_tls = false } = {}): SecureContext {
  if (legacy_tls) {
    legacy ??= createSecureContext({ ca: [], ...legacy_tls_settings });
    return legacy;
  }
  without_authorities ??= createSecureContext({ ca: [] });
  return without_authorities;
}

/** Passes a connection to a request only after its certificate was accepted. */
class PinnedAgent extends HttpsAgent {
  readonly #parts: PinnedHttpParts;
  readonly #connecting = new Set<TLSSocket>();

  constructor(parts: PinnedHttpParts) {
    super({ keepAlive: true, maxSockets: 1 });
    this.#parts = parts;
  }

  override createConnection(
    _options: unknown,
    callback?: (error: Error | null, stream: Duplex) => void,
  ): undefined {
    const { host, name, port, connect_ms, check, legacy_tls = false } = this.#parts;
    const lookup = name?.lookup;
    const secureContext = contextWithoutAuthorities({ legacy_tls });
    const socket = connect({ host, port, lookup, secureContext, rejectUnauthorized: false });
    this.#connecting.add(socket);
    const cancel = deadline(connect_ms, () => socket.destroy());
    const fail = (error: Error): void => {
      cancel();
      this.#connecting.delete(socket);
      socket.destroy();
      callback?.(error, socket);
    };
    const onClose = (): void => fail(new DeviceUnreachable(texts.connection_closed));
    const hand = (): void => {
      cancel();
      this.#connecting.delete(socket);
      socket.off('error', fail).off('close', onClose);
      callback?.(null, socket);
    };
    socket.once('error', fail);
    socket.once('close', onClose);
    socket.once('secureConnect', () => {
      const fingerprint = socket.getPeerX509Certificate()?.fingerprint256;
      if (fingerprint === undefined) fail(new DeviceUnreachable(texts.no_certificate));
      else check(fingerprint).then(hand, (error: unknown) => fail(errorOf(error)));
    });
    return undefined;
  }

  override destroy(): void {
    for (const socket of this.#connecting) socket.destroy();
    super.destroy();
  }
}
