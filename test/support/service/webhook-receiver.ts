/** A receiver of webhooks on loopback that misbehaves on command. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';

export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly at_ms: number;
}

/** How it answers. `hang`: never; `reset`: ends the connection; `flood`: 200 with a body without end. */
export type Manner = number | 'hang' | 'reset' | 'flood' | 'redirect' | { readonly slow_ms: number };

export type WebhookReceiver = Awaited<ReturnType<typeof startWebhookReceiver>>;

export async function startWebhookReceiver() {
  const received: Received[] = [];
  const state = { manner: 200 as Manner, retry_after: undefined as string | undefined, open: 0, open_max: 0 };
  const server = createServer((request, response) => {
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
  });
  const answer = (response: ServerResponse): void => {
    const { manner } = state;
    if (state.retry_after !== undefined) response.setHeader('retry-after', state.retry_after);
    if (manner === 'hang') return;
    if (manner === 'reset') response.destroy();
    else if (manner === 'redirect') response.writeHead(307, { location: '/elsewhere' }).end();
    else if (manner === 'flood') flood(response);
    else if (typeof manner === 'number') response.writeHead(manner).end('{}');
    else setTimeout(() => response.writeHead(200).end(), manner.slow_ms);
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    port,
    received,
    state,
    async stop() {
      server.closeAllConnections();
      await new Promise((done) => {
        server.close(done);
      });
    },
  };
}

function flood(response: ServerResponse): void {
  response.writeHead(200);
  const more = (): void => {
    while (!response.destroyed && response.write(Buffer.alloc(65_536)));
  };
  response.on('drain', more);
  more();
}
