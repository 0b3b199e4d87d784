/** A simulated vehicle that listens on a TCP port, as ArduPilot in software and serial servers do. */
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { StreamFramer } from '../../drivers/mavlink/wire/framer.ts';
import { FakeDrone } from './fake-drone.ts';

/** A connection whose other side accepts nothing is closed. */
const unsent_bytes_max = 1_000_000;

export class TcpDrone extends FakeDrone {
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  constructor(options: Omit<ConstructorParameters<typeof FakeDrone>[0], 'port'>) {
    super({ ...options, port: 1 });
    this.#server = createServer((socket) => this.#serve(socket));
  }

  /** Listens on the loopback; returns the port. */
  async listen(): Promise<number> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('no port was given');
    return address.port;
  }

  override stop(): void {
    super.stop();
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  protected override carry(bytes: Uint8Array): void {
    for (const socket of this.#sockets) {
      if (socket.writableLength > unsent_bytes_max) socket.destroy();
      else socket.write(bytes);
    }
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    const framer = new StreamFramer({
      frame: ({ bytes }) => this.receive(bytes),
    });
    socket.setNoDelay(true);
    socket.on('data', (chunk) => framer.push(chunk));
    socket.on('error', () => undefined);
    socket.on('close', () => this.#sockets.delete(socket));
  }
}
