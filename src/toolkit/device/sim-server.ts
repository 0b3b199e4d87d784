/** The HTTP server of a simulated device on the loopback, for trials and as the base of the tests' fakes. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createHttps, type ServerOptions } from 'node:https';
import type { Socket } from 'node:net';

const address = '127.0.0.1';
/** As Node.js has it. */
const keep_alive_default_ms = 5_000;

export abstract class SimServer {
  connections = 0;
  protected readonly keep_alive_ms: number = keep_alive_default_ms;
  /** From the next `listen` on; plain HTTP without it. */
  protected tls: ServerOptions | undefined;
  readonly #sockets = new Set<Socket>();
  readonly #stopping = new AbortController();
  #server: Server | undefined;
  #port = 0;

  get port(): number {
    return this.#port;
  }

  get base(): string {
    return `http${this.tls ? 's' : ''}://${address}:${this.#port}`;
  }

  get isListening(): boolean {
    return this.#server !== undefined;
  }

  /** Ends with the device for good. */
  protected get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Listens, after `lose` on the same port again; 0: any free port. */
  async listen(port = this.#port): Promise<void> {
    if (this.#server) return;
    const serve = (request: IncomingMessage, response: ServerResponse): void =>
      void this.serve(request, response).catch(() => response.destroy());
    const server = this.tls ? createHttps(this.tls, serve) : createServer(serve);
    server.keepAliveTimeout = this.keep_alive_ms;
    server.on('connection', (socket: Socket) => {
      this.connections += 1;
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    server.listen(port, address);
    await once(server, 'listening');
    const at = server.address();
    this.#port = typeof at === 'object' && at !== null ? at.port : 0;
    this.#server = server;
  }

  /** Power off: no port, no connections. What the device remembers stays. */
  async lose(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    for (const socket of this.#sockets) socket.destroy();
    if (!server) return;
    server.close();
    await once(server, 'close');
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.lose();
  }

  protected abstract serve(request: IncomingMessage, response: ServerResponse): Promise<void>;
}
