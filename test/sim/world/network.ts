/**
 * TCP between the processes, as far as MQTT notices it: bytes arrive in order, late or never; a connection is refused,
 * ends, is reset, or goes on looking alive on one side only.
 */
import { Duplex } from 'node:stream';
import type { Rng } from './rng.ts';
import type { Proc, World } from './scheduler.ts';

/** The way between a client and the broker. Faults change it while connections run. */
export interface Link {
  readonly name: string;
  latency_ms: number;
  jitter_ms: number;
  /** 0: without limit. */
  bytes_per_ms: number;
  /** Nothing passes until then; what was sent is sent again by TCP. */
  down_until_ms: number;
}

/** The other end of a connection. */
export interface Acceptor {
  readonly proc: () => Proc | undefined;
  /** Takes a connection; undefined: nobody listens. */
  readonly accept: (connection: Connection) => ServerEnd | undefined;
}

export interface ServerEnd {
  readonly received: (bytes: Buffer) => void;
  readonly closed: () => void;
}

/** Sent and not yet delivered: beyond it the writer waits. */
const in_flight_bytes_max = 256 * 1024;
const connect_timeout_ms = 60_000;
/** What waited while a link was down arrives within this time. */
const resend_ms = 2_000;

interface Way {
  /** When the last byte that was sent arrives. */
  clear_ms: number;
  in_flight: number;
  readonly queue: { readonly bytes: number; readonly arrived: () => void }[];
  /** Its bytes vanish, and nobody hears of it. */
  dead: boolean;
}

export class Network {
  readonly connections = new Set<Connection>();
  readonly #world: World;
  readonly #rng: Rng;

  constructor(world: World, rng: Rng) {
    this.#world = world;
    this.#rng = rng;
  }

  link(name: string, latency_ms: number): Link {
    return { name, latency_ms, jitter_ms: latency_ms / 4, bytes_per_ms: 0, down_until_ms: 0 };
  }

  /** Opens a connection for the process that asks. */
  connect(link: Link, to: Acceptor): Duplex {
    const client = this.#world.current;
    if (!client) throw new TypeError('only a process connects');
    const connection = new Connection({ world: this.#world, rng: this.#rng, link, client, to });
    this.connections.add(connection);
    connection.onEnd = () => this.connections.delete(connection);
    return connection.stream;
  }

  /** Every connection of this link, as its faults find it. */
  of(link: Link): readonly Connection[] {
    return [...this.connections].filter((each) => each.link === link);
  }

  /** The process is gone. `silent`: with its machine, so that nobody says so to the others. */
  lost(proc: Proc, silent: boolean): void {
    for (const connection of this.connections) connection.lost(proc, silent);
  }
}

interface ConnectionParts {
  readonly world: World;
  readonly rng: Rng;
  readonly link: Link;
  readonly client: Proc;
  readonly to: Acceptor;
}

export class Connection {
  readonly link: Link;
  readonly stream: Duplex;
  onEnd: () => void = () => undefined;
  readonly #parts: ConnectionParts;
  readonly #up: Way = { clear_ms: 0, in_flight: 0, queue: [], dead: false };
  readonly #down: Way = { clear_ms: 0, in_flight: 0, queue: [], dead: false };
  #server: { readonly end: ServerEnd; readonly proc: Proc } | undefined;
  /** Written before the connection stood. */
  #early: (() => void)[] = [];
  #client_open = true;
  #server_open = false;

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
    this.link = parts.link;
    this.stream = new Duplex({
      read: () => undefined,
      write: (chunk: Buffer, _encoding, done) => this.#write(chunk, done),
      final: (done) => {
        done();
        this.#closeUp();
      },
      destroy: (error, done) => {
        this.#client_open = false;
        this.#closeUp();
        done(error);
      },
    });
    const { world, client, link } = parts;
    const delay_ms = Math.max(link.down_until_ms - world.now_ms, 0) + 2 * this.#delay();
    if (delay_ms > connect_timeout_ms) {
      world.after(connect_timeout_ms, client, () => this.#failed('connect ETIMEDOUT', 'ETIMEDOUT'));
    } else world.after(delay_ms, client, () => this.#establish());
  }

  /** From the server to the client. */
  send(bytes: Buffer): void {
    if (!this.#server_open) return;
    this.#carry(this.#down, bytes.length, this.#parts.client, () => {
      if (this.#client_open) this.stream.push(bytes);
    });
  }

  /** The server closes the connection in good order. */
  close(): void {
    if (!this.#server_open) return;
    this.#server_open = false;
    this.#carry(this.#down, 0, this.#parts.client, () => {
      if (this.#client_open) this.stream.push(null);
      this.stream.destroy();
    });
    this.#over();
  }

  /** Both ends hear at once that it is over. */
  reset(): void {
    const { world, client } = this.#parts;
    world.after(0, client, () => this.#failed('read ECONNRESET', 'ECONNRESET'));
    this.#serverGone();
  }

  /** One direction, or both, goes on without anything passing. */
  halfOpen(way: 'up' | 'down' | 'both'): void {
    if (way !== 'down') this.#up.dead = true;
    if (way !== 'up') this.#down.dead = true;
  }

  /** One of the two processes is gone. */
  lost(proc: Proc, silent: boolean): void {
    const { client, world } = this.#parts;
    if (proc === client) {
      this.#client_open = false;
      if (silent) this.halfOpen('both');
      else this.#closeUp();
    } else if (proc === this.#server?.proc) {
      this.#server_open = false;
      if (silent) this.halfOpen('both');
      else world.after(this.#delay(), client, () => this.#failed('read ECONNRESET', 'ECONNRESET'));
    }
  }

  #establish(): void {
    if (!this.#client_open) return this.#over();
    const { to } = this.#parts;
    const proc = to.proc();
    const end = proc && this.#parts.world.enter(proc, () => to.accept(this));
    if (!proc || !end) return this.#failed('connect ECONNREFUSED', 'ECONNREFUSED');
    this.#server = { end, proc };
    this.#server_open = true;
    this.stream.emit('connect');
    for (const write of this.#early.splice(0)) write();
  }

  #write(chunk: Buffer, done: () => void): void {
    const server = this.#server;
    if (!server) {
      this.#early.push(() => this.#write(chunk, done));
      return;
    }
    const isFull = this.#up.in_flight + chunk.length > in_flight_bytes_max;
    const { world, client } = this.#parts;
    const arrives_ms = this.#carry(this.#up, chunk.length, server.proc, () => {
      if (this.#server_open) server.end.received(chunk);
    });
    if (isFull) world.after(arrives_ms - world.now_ms, client, done);
    else done();
  }

  /** Brings something over in its turn; answers when. */
  #carry(way: Way, bytes: number, proc: Proc, arrived: () => void): number {
    const { world, link } = this.#parts;
    const starts_ms = Math.max(world.now_ms, link.down_until_ms);
    const rate_ms = link.bytes_per_ms > 0 ? bytes / link.bytes_per_ms : 0;
    way.clear_ms = Math.max(way.clear_ms, starts_ms + this.#late() + this.#delay()) + rate_ms;
    way.in_flight += bytes;
    way.queue.push({ bytes, arrived });
    world.after(way.clear_ms - world.now_ms, proc, () => this.#arrive(way, proc));
    return way.clear_ms;
  }

  /** Delivers what is first in line, so that nothing overtakes whatever the faults do meanwhile. */
  #arrive(way: Way, proc: Proc): void {
    const { world, link } = this.#parts;
    if (link.down_until_ms > world.now_ms) {
      const again_ms = link.down_until_ms - world.now_ms + this.#late();
      world.after(again_ms, proc, () => this.#arrive(way, proc));
      return;
    }
    const first = way.queue.shift();
    if (!first) return;
    way.in_flight -= first.bytes;
    if (!way.dead) first.arrived();
  }

  /** TCP notices some time later that the link is back. */
  #late(): number {
    const { world, link, rng } = this.#parts;
    return link.down_until_ms > world.now_ms ? rng.next() * resend_ms : 0;
  }

  #delay(): number {
    const { link, rng } = this.#parts;
    return link.latency_ms / 2 + rng.next() * link.jitter_ms;
  }

  #failed(message: string, code: string): void {
    if (this.#client_open) this.stream.destroy(Object.assign(new Error(message), { code }));
    this.#over();
  }

  /** The client has closed its side. */
  #closeUp(): void {
    const server = this.#server;
    if (server && this.#server_open)
      this.#carry(this.#up, 0, server.proc, () => {
        this.#serverGone();
      });
    else if (!this.#client_open) this.#over();
  }

  #serverGone(): void {
    const server = this.#server;
    if (!server || !this.#server_open) return this.#over();
    this.#server_open = false;
    this.#parts.world.after(0, server.proc, () => server.end.closed());
    this.#over();
  }

  #over(): void {
    if (!this.#client_open || !this.#server_open) this.onEnd();
  }
}
