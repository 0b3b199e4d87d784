/** Posts to one radio over one kept connection, whose certificate is checked before anything is sent. */
import {
  Agent as HttpAgent,
  type ClientRequest,
  type IncomingMessage,
  request as httpRequest,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import { connect, type TLSSocket } from 'node:tls';
import { DeviceUnreachable, messageOf } from '../../src/errors.ts';
import type { Limits } from './limits.ts';

export interface Endpoint {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly tls: boolean;
}

/** Resolves when the certificate with this SHA-256 fingerprint may be trusted; rejects otherwise. */
type CheckCertificate = (fingerprint: string) => Promise<void>;

interface HttpReply {
  readonly status: number;
  readonly text: string;
}

export interface Http {
  /** Rejects with DeviceUnreachable, or with what the check of the certificate threw. */
  readonly post: (body: string, deadline_ms: number) => Promise<HttpReply>;
  /** Ends every request and connection, for good. */
  readonly close: () => void;
}

export function openHttp(
  endpoint: Endpoint,
  check: CheckCertificate,
  limits: Pick<Limits, 'request_ms' | 'reply_bytes_max'>,
): Http {
  const agent = endpoint.tls
    ? new PinnedAgent(endpoint, check, limits.request_ms)
    : new HttpAgent({ keepAlive: true, maxSockets: 1 });
  const requests = new Set<ClientRequest>();
  let isClosed = false;
  return {
    async post(body, deadline_ms) {
      if (isClosed) throw new DeviceUnreachable('the connector stops');
      const { host, port, path } = endpoint;
      const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
      const options = { host, port, path, agent, method: 'POST', headers };
      const request = endpoint.tls ? httpsRequest(options) : httpRequest(options);
      requests.add(request);
      request.once('close', () => requests.delete(request));
      return exchange(request, body, deadline_ms, limits.reply_bytes_max);
    },
    close() {
      isClosed = true;
      for (const request of requests) request.destroy(new DeviceUnreachable('the connector stops'));
      agent.destroy();
    },
  };
}

/** The deadline is for the whole exchange: a reply that drips is over with it too. */
async function exchange(
  request: ClientRequest,
  body: string,
  deadline_ms: number,
  bytes_max: number,
): Promise<HttpReply> {
  const deadline = setTimeout(() => {
    request.destroy(new DeviceUnreachable(`does not answer within ${deadline_ms / 1000} s`));
  }, deadline_ms);
  const done = Promise.withResolvers<HttpReply>();
  let isAnswered = false;
  // Stays until the end: errors may come after the promise is settled.
  request.on('error', (error) => done.reject(plain(error)));
  request.once('close', () => {
    // Reading the reply tells how it ended, and comes to its end after this event.
    if (!isAnswered) done.reject(new DeviceUnreachable('closed the connection'));
  });
  request.once('response', (response) => {
    isAnswered = true;
    readText(response, bytes_max).then(
      (text) => done.resolve({ status: response.statusCode ?? 0, text }),
      (error: unknown) => {
        request.destroy();
        done.reject(plain(error));
      },
    );
  });
  request.end(body);
  try {
    return await done.promise;
  } finally {
    clearTimeout(deadline);
  }
}

async function readText(response: IncomingMessage, bytes_max: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response) {
    if (!Buffer.isBuffer(chunk)) continue;
    size += chunk.length;
    if (size > bytes_max) throw new DeviceUnreachable(`its reply is larger than ${bytes_max} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Error codes of the operating system, as a technician understands them. */
const plain_words: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refuses the connection; check that its web server runs, and check port and tls',
  EHOSTUNREACH: 'is not in the network; check its power and cable',
  ENETUNREACH: 'is in a network that this gateway does not reach',
  ETIMEDOUT: 'does not answer; check its power and cable',
  ENOTFOUND: 'has a name that cannot be resolved; check host',
  EAI_AGAIN: 'has a name that cannot be resolved now',
  ECONNRESET: 'closed the connection',
  EPROTO: 'does not speak TLS on this port; check port and tls',
};

/** What was thrown, as one of the house's errors. */
function plain(error: unknown): Error {
  if (!(error instanceof Error)) return new DeviceUnreachable(String(error));
  if (!('code' in error) || typeof error.code !== 'string') {
    return error.constructor === Error ? new DeviceUnreachable(error.message, { cause: error }) : error;
  }
  const word = error.code.startsWith('ERR_SSL') ? plain_words['EPROTO'] : plain_words[error.code];
  return new DeviceUnreachable(word ?? `cannot be asked (${messageOf(error)})`, { cause: error });
}

/** Radios sign their certificates themselves, so its fingerprint is all that tells a radio from an impostor. */
class PinnedAgent extends HttpsAgent {
  readonly #endpoint: Endpoint;
  readonly #check: CheckCertificate;
  readonly #connect_ms: number;
  readonly #connecting = new Set<TLSSocket>();

  constructor(endpoint: Endpoint, check: CheckCertificate, connect_ms: number) {
    super({ keepAlive: true, maxSockets: 1 });
    this.#endpoint = endpoint;
    this.#check = check;
    this.#connect_ms = connect_ms;
  }

  override createConnection(
    _options: unknown,
    callback?: (error: Error | null, stream: Duplex) => void,
  ): undefined {
    const { host, port } = this.#endpoint;
    const socket = connect({ host, port, rejectUnauthorized: false });
    this.#connecting.add(socket);
    socket.setTimeout(this.#connect_ms, () => socket.destroy());
    const fail = (error: Error): void => {
      this.#connecting.delete(socket);
      socket.destroy();
      callback?.(error, socket);
    };
    const onClose = (): void => fail(new DeviceUnreachable('closed the connection'));
    const hand = (): void => {
      this.#connecting.delete(socket);
      socket.off('error', fail).off('close', onClose).setTimeout(0);
      callback?.(null, socket);
    };
    socket.once('error', fail);
    socket.once('close', onClose);
    socket.once('secureConnect', () => {
      const fingerprint = socket.getPeerX509Certificate()?.fingerprint256;
      if (fingerprint === undefined) fail(new DeviceUnreachable('shows no certificate'));
      else this.#check(fingerprint).then(hand, (error: unknown) => fail(plain(error)));
    });
    return undefined;
  }

  override destroy(): void {
    for (const socket of this.#connecting) socket.destroy();
    super.destroy();
  }
}
