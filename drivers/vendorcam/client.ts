/** Speaks HTTP or HTTPS to one host over one kept connection, whose certificate is checked before anything is sent. */
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
import { GivenUp } from './failure.ts';
import type { Limits } from './limits.ts';

export interface Endpoint {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
}

/** Resolves when the certificate with this SHA-256 fingerprint may be trusted; rejects otherwise. */
export type CheckCertificate = (fingerprint: string) => Promise<void>;

export interface HttpReply {
  readonly status: number;
  readonly text: string;
}

export interface Client {
  /** Rejects with DeviceUnreachable, or with what the check of the certificate threw. */
  readonly post: (path: string, body: string, giveUp: AbortSignal) => Promise<HttpReply>;
  /** Ends every request and connection, for good. */
  readonly close: () => void;
}

export function openClient(
  endpoint: Endpoint,
  check: CheckCertificate,
  limits: Pick<Limits, 'request_ms' | 'reply_bytes_max'>,
): Client {
  const agent = endpoint.tls
    ? new PinnedAgent(endpoint, check, limits.request_ms)
    : new HttpAgent({ keepAlive: true, maxSockets: 1 });
  const requests = new Set<ClientRequest>();
  let closed = false;
  return {
    post: async (path, body, giveUp) => {
      if (closed) throw new DeviceUnreachable('the connector stops');
      const options = {
        host: endpoint.host,
        port: endpoint.port,
        path,
        agent,
        method: 'POST',
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
      };
      const request = endpoint.tls ? httpsRequest(options) : httpRequest(options);
      requests.add(request);
      request.once('close', () => requests.delete(request));
      return exchange(request, body, { giveUp, ...limits });
    },
    close: () => {
      closed = true;
      for (const request of requests) request.destroy(new DeviceUnreachable('the connector stops'));
      agent.destroy();
    },
  };
}

interface ExchangeLimits extends Pick<Limits, 'request_ms' | 'reply_bytes_max'> {
  readonly giveUp: AbortSignal;
}

/** The deadline is for the whole exchange: a reply that drips is over with it too. */
async function exchange(request: ClientRequest, body: string, limits: ExchangeLimits): Promise<HttpReply> {
  const { giveUp, request_ms, reply_bytes_max } = limits;
  const tooLate = (): void => {
    request.destroy(new DeviceUnreachable(`does not answer within ${request_ms / 1000} s`));
  };
  const onGiveUp = (): void => {
    request.destroy(new GivenUp('the request was given up for a more urgent one'));
  };
  const deadline = setTimeout(tooLate, request_ms);
  giveUp.addEventListener('abort', onGiveUp, { once: true });
  try {
    return await new Promise<HttpReply>((resolve, reject) => {
      // Stays until the end: errors may come after the promise is settled.
      request.on('error', reject);
      // After the response has begun, reading it tells how it ended.
      const onClose = (): void => reject(new DeviceUnreachable('closed the connection'));
      request.on('close', onClose);
      request.on('response', (response) => {
        request.off('close', onClose);
        readBody(response, reply_bytes_max).then(
          (text) => resolve({ status: response.statusCode ?? 0, text }),
          (error: unknown) => {
            request.destroy();
            reject(error instanceof Error ? error : new Error(String(error)));
          },
        );
      });
      request.end(body);
    });
  } catch (error) {
    throw plain(error);
  } finally {
    clearTimeout(deadline);
    giveUp.removeEventListener('abort', onGiveUp);
  }
}

/** Bytes that are no UTF-8 become replacement characters: a name in another encoding must not cost the whole reply. */
async function readBody(response: IncomingMessage, bytes_max: number): Promise<string> {
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
  ECONNREFUSED:
    'refuses the connection; switch HTTPS on in its network settings (firmware updates switch it off), or check port and tls',
  EHOSTUNREACH: 'is not in the network; check its power and cable',
  ENETUNREACH: 'is in a network that this gateway does not reach',
  ETIMEDOUT: 'does not answer; check its power and cable',
  ENOTFOUND: 'has a name that cannot be resolved; check host',
  EAI_AGAIN: 'has a name that cannot be resolved now',
  ECONNRESET: 'closed the connection',
  EPROTO: 'does not speak TLS on this port; check port and tls',
};

/** What was thrown, as one of the house's errors. */
function plain(error: unknown): unknown {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') {
    return error instanceof Error && error.constructor === Error
      ? new DeviceUnreachable(error.message, { cause: error })
      : error;
  }
  const word = error.code.startsWith('ERR_SSL') ? plain_words['EPROTO'] : plain_words[error.code];
  return new DeviceUnreachable(word ?? `cannot be asked (${messageOf(error)})`, { cause: error });
}

/** Cameras sign their certificates themselves, so its fingerprint is all that tells one camera from an impostor. */
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
    socket.once('error', fail);
    socket.once('close', onClose);
    socket.once('secureConnect', () => void trust());
    const trust = async (): Promise<void> => {
      try {
        await this.#verify(socket);
      } catch (error) {
        fail(error instanceof Error ? error : new Error(String(error)));
        return;
      }
      this.#connecting.delete(socket);
      socket.off('error', fail).off('close', onClose).setTimeout(0);
      callback?.(null, socket);
    };
  }

  override destroy(): void {
    for (const socket of this.#connecting) socket.destroy();
    super.destroy();
  }

  async #verify(socket: TLSSocket): Promise<void> {
    const fingerprint = socket.getPeerX509Certificate()?.fingerprint256;
    if (fingerprint === undefined) throw new DeviceUnreachable('shows no certificate');
    await this.#check(fingerprint);
  }
}
