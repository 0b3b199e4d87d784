/** HTTP listener with secret paths for events of cameras that cannot be pulled (WS-BaseNotification). */
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { isIPv6, type Socket } from 'node:net';
import { messageOf } from '../../../src/platform/errors.ts';
import { limitConnections } from '../../../src/platform/limit-connections.ts';
import { gather } from '../../../src/platform/gathered-bytes.ts';
import { plainIp } from '../../../src/platform/networks.ts';
import { sleep } from '../../../src/platform/time.ts';
import { replyText } from '../soap/transport.ts';
import { texts } from '../texts.ts';

export interface WebhookOptions {
  readonly listen: string;
  readonly port: number;
  readonly address?: string | undefined;
}

export interface Hook {
  /** Address given to the camera; `local_address`: the gateway's on the connection to it. */
  url(local_address: string | undefined): string;
  close(): void;
}

/** When there are so many, the oldest that has not named a path of a camera gives way: no number of hosts fills the places. */
const connections_max = 128;
/** Connections of one address: a camera has one, and briefly a second one while it reconnects. */
const address_connections_max = 16;
/** A call carries a few events. */
const call_bytes_max = 262_144;
const request_timeout_ms = 10_000;
/** Queued messages of one camera; more are refused, and the camera sends its state again when asked. */
const waiting_max = 32;
/** Pause between two messages of one camera: all share the main thread. */
const gap_ms = 20;

interface Receiver {
  waiting: number;
  /** Resolves when the previous message was handled. */
  turn: Promise<void>;
  /** Never rejects. */
  readonly take: (xml: string) => Promise<void>;
}

/** The listener, which is opened for the first camera that needs it. */
export class Webhook {
  readonly #options: WebhookOptions;
  readonly #receivers = new Map<string, Receiver>();
  /** Connections by address. */
  readonly #open = new Map<string, number>();
  /** All connections. */
  readonly #all = new Set<Socket>();
  /** Connections that have not named the path of a camera, oldest first. */
  readonly #unknown = new Set<Socket>();
  readonly #stopping = new AbortController();
  #opening: Promise<Server> | undefined;

  constructor(options: WebhookOptions) {
    this.#options = options;
  }

  /** Registers one camera, or returns why that failed, which is no fault of the camera. */
  async open(take: Receiver['take']): Promise<Hook | string> {
    this.#opening ??= this.#listen();
    let server: Server;
    try {
      server = await this.#opening;
    } catch (error) {
      this.#opening = undefined;
      return texts.cannot_listen(messageOf(error));
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
    server.on('connection', (socket) => this.#admit(socket));
    limitConnections(server);
    server.on('request', (request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
    server.on('checkExpectation', refuse);
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#options.port, this.#options.listen, resolve);
    });
    server.on('error', () => undefined);
    return server;
  }

  /** Limits one host that holds connections open, and all of them together. */
  #admit(socket: Socket): void {
    const address = socket.remoteAddress ?? '';
    const open = this.#open.get(address) ?? 0;
    if (open >= address_connections_max || !this.#hasRoom()) {
      socket.destroy();
      return;
    }
    this.#open.set(address, open + 1);
    this.#all.add(socket);
    this.#unknown.add(socket);
    // Before the parser, which has its listener already.
    socket.prependOnceListener('data', mendRequestLine);
    socket.once('close', () => {
      this.#all.delete(socket);
      this.#unknown.delete(socket);
      const left = (this.#open.get(address) ?? 1) - 1;
      if (left > 0) this.#open.set(address, left);
      else this.#open.delete(address);
    });
  }

  /** Makes room where there is none. */
  #hasRoom(): boolean {
    if (this.#all.size < connections_max) return true;
    const [oldest] = this.#unknown;
    if (!oldest) return false;
    this.#all.delete(oldest);
    this.#unknown.delete(oldest);
    oldest.destroy();
    return true;
  }

  /** Every invalid request gets the same answer, so that guessing reveals nothing. */
  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const receiver = this.#receivers.get(request.url ?? '');
    if (!receiver || request.method !== 'POST' || receiver.waiting >= waiting_max) {
      refuse(request, response);
      return;
    }
    this.#unknown.delete(request.socket);
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

const request_line_bytes_max = 512;

/**
 * Hikvision doorbells and others send a blank behind the version (home-assistant/core#92892, #158823), which the parser takes in front
 * of it only.
 */
function mendRequestLine(chunk: Buffer): void {
  const head = chunk.toString('latin1', 0, request_line_bytes_max);
  const [, start, version, blanks] = /^([^\r\n]*) (HTTP\/1\.[01])( +)\r?\n/u.exec(head) ?? [];
  if (start !== undefined) chunk.write(`${start}${blanks} ${version}`, 'latin1');
}

function refuse(request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(404, { Connection: 'close' }).end();
  request.resume();
}

async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  const call = await gather(request, call_bytes_max);
  return call && replyText(call, request.headers['content-type']);
}

function plainAddress(address: string | undefined): string | undefined {
  return address && plainIp(address).replace(/%.*$/u, '');
}
