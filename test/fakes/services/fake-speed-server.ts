/** A web server that gives and takes data for a speed test, at a rate, and misbehaves on command. */
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttps } from 'node:https';
import type { Socket } from 'node:net';
import { sleep } from '../../../src/platform/time.ts';

type Manner =
  | 'good'
  | 'stall'
  | 'reset'
  | 'short'
  | 'redirect'
  | 'error'
  | 'early'
  | 'deaf'
  | 'closing'
  | 'strict'
  | 'hasty';

export interface FakeSpeedServer {
  readonly origin: string;
  /**
   * `stall`: nothing after the first bytes; `early`: answers at once with nothing; `deaf`: never answers; `closing`: ends the connection
   * after each answer, as LibreSpeed behind HTTP/1.0; `strict`: no bodies above 1 MB and no files above 100 kB, as nginx by default
   * (librespeed/speedtest#123, ddsol/speedtest.net#39); `hasty`: answers before it reads the body (librespeed/speedtest#819).
   */
  manner: Manner;
  /** All connections together; undefined: as fast as it goes. */
  bytes_per_s: number | undefined;
  /** Body bytes that it has given and taken. */
  readonly moved: { down: number; up: number };
  /** Connections that are open now. */
  open(): number;
  stop(): Promise<void>;
}

const piece = Buffer.alloc(16_384, 7);

export async function startSpeedServer(tls?: {
  readonly cert: string;
  readonly key: string;
}): Promise<FakeSpeedServer> {
  const stopping = new AbortController();
  const sockets = new Set<Socket>();
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    request.on('error', () => undefined);
    // Each wait for its buffer to drain listens for its end too.
    response.setMaxListeners(0);
    response.on('error', () => undefined);
    void answer(request, response, { server, signal: stopping.signal });
  };
  const web = tls ? createHttps(tls, serve) : createHttp(serve);
  web.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => {
    web.listen(0, '127.0.0.1', resolve);
  });
  const address = web.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const server: FakeSpeedServer = {
    origin: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    manner: 'good',
    bytes_per_s: undefined,
    moved: { down: 0, up: 0 },
    open: () => sockets.size,
    async stop() {
      stopping.abort();
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => {
        web.close(resolve);
      });
    },
  };
  return server;
}

interface Around {
  readonly server: FakeSpeedServer;
  readonly signal: AbortSignal;
}

/** Manners that neither give nor take data. */
const at_once: Partial<Record<Manner, (response: ServerResponse) => void>> = {
  redirect: (response) => response.writeHead(302, { location: 'http://elsewhere.invalid/file' }).end(),
  error: (response) => response.writeHead(503).end('busy'),
  early: (response) => response.writeHead(200).end(),
  deaf: () => undefined,
};

async function answer(request: IncomingMessage, response: ServerResponse, around: Around): Promise<void> {
  const { manner } = around.server;
  const reply = at_once[manner];
  if (reply) {
    reply(response);
    return;
  }
  if (manner === 'closing') response.setHeader('connection', 'close');
  if (manner === 'hasty' && request.method === 'POST') response.writeHead(200).end('thanks');
  if (request.method === 'POST') await take(request, response, around);
  else await give(request, response, around);
}

async function give(request: IncomingMessage, response: ServerResponse, around: Around): Promise<void> {
  const { server, signal } = around;
  const wanted = Number(new URL(request.url ?? '/', server.origin).searchParams.get('bytes'));
  const total = Math.min(
    wanted,
    server.manner === 'short' ? 2_000 : server.manner === 'strict' ? 100_000 : wanted,
  );
  response.writeHead(200, { 'content-length': total });
  for (let given = 0; given < total && !signal.aborted && !response.destroyed;) {
    const part = piece.subarray(0, Math.min(piece.length, total - given));
    given += part.length;
    server.moved.down += part.length;
    if (!response.write(part)) await Promise.race([drained(response), sleep(100, signal)]);
    if (server.manner === 'stall') return;
    if (server.manner === 'reset') {
      request.socket.resetAndDestroy();
      return;
    }
    await pace(part.length, around);
  }
  response.end();
}

const body_bytes_max = 1_048_576;

async function take(request: IncomingMessage, response: ServerResponse, around: Around): Promise<void> {
  const { server } = around;
  if (server.manner === 'strict' && Number(request.headers['content-length']) > body_bytes_max) {
    response.writeHead(413, { connection: 'close' }).end();
    return;
  }
  try {
    for await (const chunk of request) {
      const bytes = Buffer.isBuffer(chunk) ? chunk.length : 0;
      server.moved.up += bytes;
      if (server.manner === 'reset') {
        request.socket.resetAndDestroy();
        return;
      }
      await pace(bytes, around);
    }
    if (!response.headersSent) response.writeHead(200).end('thanks');
  } catch {
    // The client went away, which is its right.
  }
}

async function drained(response: ServerResponse): Promise<void> {
  await new Promise<void>((resolve) => {
    response.once('drain', () => resolve());
    response.once('close', () => resolve());
  });
}

async function pace(bytes: number, { server, signal }: Around): Promise<void> {
  if (server.bytes_per_s !== undefined) await sleep((bytes / server.bytes_per_s) * 1_000, signal);
}
