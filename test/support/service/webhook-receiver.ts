/** A receiver of webhooks on loopback that misbehaves on command. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { Writable } from 'node:stream';

export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly at_ms: number;
}

/** How it answers. `hang`: never; `reset`: ends the connection; `flood`: 200 with a body without end. */
export type Manner =
  | number
  | 'hang'
  | 'reset'
  | 'flood'
  | 'redirect'
  | { readonly slow_ms: number }
  /** The first text, then the second without end, in place of an answer. */
  | { readonly endless: readonly [string, string] };

export type WebhookReceiver = Awaited<ReturnType<typeof startWebhookReceiver>>;

/** `tls`: PEM; left out: plain HTTP. */
export async function startWebhookReceiver(tls?: { readonly cert: Buffer; readonly key: Buffer }) {
  const received: Received[] = [];
  const open_ids = new Set<string>();
  /** Ids that came while they were being answered. */
  const overlaps: string[] = [];
  const state = { manner: 200 as Manner, retry_after: undefined as string | undefined, open: 0, open_max: 0 };
  const listener: RequestListener = (request, response) => {
    const id = String(request.headers['webhook-id']);
    if (open_ids.has(id)) overlaps.push(id);
    open_ids.add(id);
    response.once('close', () => open_ids.delete(id));
    state.open += 1;
    state.open_max = Math.max(state.open_max, state.open);
    response.once('close', () => (state.open -= 1));
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => undefined);
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8');
      received.push({ headers: request.headers, body, at_ms: Date.now() });
      answer(response);
    });
  };
  const server = tls ? createSecureServer(tls, listener) : createServer(listener);
  const answer = (response: ServerResponse): void => {
    const { manner } = state;
    if (state.retry_after !== undefined) response.setHeader('retry-after', state.retry_after);
    if (manner === 'hang') return;
    if (manner === 'reset') response.destroy();
    else if (manner === 'redirect') response.writeHead(307, { location: '/elsewhere' }).end();
    else if (manner === 'flood') flood(response.writeHead(200), Buffer.alloc(65_536));
    else if (typeof manner === 'number') response.writeHead(manner).end('{}');
    else if ('endless' in manner) sendEndless(response, manner.endless);
    else setTimeout(() => response.writeHead(200).end(), manner.slow_ms);
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}/hook`,
    port,
    received,
    overlaps,
    state,
    async stop() {
      server.closeAllConnections();
      await new Promise((done) => {
        server.close(done);
      });
    },
  };
}

function sendEndless({ socket }: ServerResponse, [first, more]: readonly [string, string]): void {
  if (!socket) return;
  socket.on('error', () => undefined);
  socket.write(first);
  flood(socket, Buffer.from(more.repeat(1_000)));
}

function flood(to: Writable, bytes: Buffer): void {
  const more = (): void => {
    while (!to.destroyed && to.write(bytes));
  };
  to.on('drain', more);
  more();
}
