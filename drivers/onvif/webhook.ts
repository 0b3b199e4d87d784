/** Where cameras that cannot be pulled bring their events (WS-BaseNotification): a small listener with secret paths. */
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { isIPv6 } from 'node:net';
import { messageOf } from '../../src/errors.ts';
import { sleep } from '../../src/platform/time.ts';
import { reply_bytes_max } from './xml.ts';

export interface WebhookOptions {
  readonly listen: string;
  readonly port: number;
  readonly address?: string | undefined;
}

export interface Hook {
  /** What the camera is told; `local_address`: ours, as it sees us. */
  url(local_address: string | undefined): string;
  close(): void;
}

const connections_max = 128;
const request_timeout_ms = 10_000;
/** Messages of one camera that wait to be read; more are refused, and the camera says its state again when asked. */
const waiting_max = 32;
/** Between two messages of one camera that are read: the time of the main thread belongs to all. */
const gap_ms = 20;

interface Receiver {
  waiting: number;
  /** Resolves when the message before was taken. */
  turn: Promise<void>;
  /** Never rejects. */
  readonly take: (xml: string) => Promise<void>;
}

/** Guards the listener, which is opened for the first camera that needs it. */
export class Webhook {
  readonly #options: WebhookOptions;
  readonly #receivers = new Map<string, Receiver>();
  readonly #stopping = new AbortController();
  #opening: Promise<Server> | undefined;

  constructor(options: WebhookOptions) {
    this.#options = options;
  }

  /** A place for one camera, or the sentence that says why there is none: the camera itself is not to blame. */
  async open(take: Receiver['take']): Promise<Hook | string> {
    this.#opening ??= this.#listen();
    let server: Server;
    try {
      server = await this.#opening;
    } catch (error) {
      this.#opening = undefined;
      return `webhook.listen and webhook.port cannot be opened: ${messageOf(error)}`;
    }
    const path = `/${randomBytes(16).toString('hex')}`;
    this.#receivers.set(path, { waiting: 0, turn: Promise.resolve(), take });
    return {
      url: (local_address) => {
        const at = server.address();
        const port = typeof at === 'object' && at !== null ? at.port : this.#options.port;
        const host = this.#options.address ?? plainAddress(local_address) ?? this.#options.listen;
        return `http://${isIPv6(host) ? `[${host}]` : host}:${port}${path}`;
      },
      close: () => void this.#receivers.delete(path),
    };
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#receivers.clear();
    const server = await this.#opening?.catch(() => undefined);
    if (!server) return;
    server.closeAllConnections();
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
    });
  }

  async #listen(): Promise<Server> {
    const server = createServer({ requestTimeout: request_timeout_ms, headersTimeout: request_timeout_ms });
    server.maxConnections = connections_max;
    server.on('request', (request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#options.port, this.#options.listen, resolve);
    });
    server.on('error', () => undefined);
    return server;
  }

  /** Everything that is not exactly right gets the same answer, so that nothing is learnt by trying. */
  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const receiver = this.#receivers.get(request.url ?? '');
    if (!receiver || request.method !== 'POST' || receiver.waiting >= waiting_max) {
      refuse(request, response);
      return;
    }
    receiver.waiting += 1;
    try {
      const xml = await bodyOf(request);
      if (xml === undefined) {
        refuse(request, response);
        return;
      }
      response.writeHead(200, { Connection: 'close' }).end();
      receiver.turn = this.#takeAfter(receiver.turn, receiver, xml);
      await receiver.turn;
    } finally {
      receiver.waiting -= 1;
    }
  }

  async #takeAfter(before: Promise<void>, { take }: Receiver, xml: string): Promise<void> {
    await before;
    await take(xml);
    await sleep(gap_ms, this.#stopping.signal);
  }
}

function refuse(request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(404, { Connection: 'close' }).end();
  request.resume();
}

async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    if (!(chunk instanceof Buffer)) return undefined;
    bytes += chunk.length;
    if (bytes > reply_bytes_max) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function plainAddress(address: string | undefined): string | undefined {
  return address?.replace(/^::ffff:/iu, '').replace(/%.*$/u, '');
}
