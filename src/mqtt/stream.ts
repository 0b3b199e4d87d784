/**
 * The stream between a socket and MQTT.js: bounds what arrives, counts every byte of it as a sign of life, and keeps the messages and
 * their acknowledgements for our own code.
 */
import { Duplex } from 'node:stream';
import { plainIp } from '../platform/networks.ts';
import type { IPublishPacket } from 'mqtt-packet';
import type { Transport } from './socket.ts';
import { FrameFilter, type Oversize, type PubackPacket } from './frames.ts';

export interface MqttStreamOptions {
  readonly protocol: '5' | '3.1.1';
  /** Larger packets are read past without being held. */
  readonly packet_bytes_max: number;
  readonly onMessage: (message: IPublishPacket) => void;
  readonly onOversize: (message: Oversize) => void;
  readonly onSkipped: (message: Oversize) => void;
}

/** The two ends of a connection. */
export interface Endpoints {
  readonly local_ip: string;
  readonly remote_ip: string;
}

/** Read in one turn of the event loop beyond the packet that is under way: 4,096 of the smallest ones. */
const turn_bytes_max = 8_192;
const nothing = Buffer.alloc(0);

export class MqttStream extends Duplex {
  /** Monotonic time of the last byte to the broker. */
  sent_ms = performance.now();
  #last_received_ms = performance.now();
  readonly #socket: Duplex;
  readonly #tcp: Transport['tcp'];
  /** Received by the socket of the operating system when that was last looked at. */
  #tcp_bytes = 0;
  readonly #frames: FrameFilter;
  #onPuback: ((puback: PubackPacket) => void) | undefined;
  /** Has arrived, and waits for the next turn; nothing more is read meanwhile, but the end may come. */
  #waiting: Buffer = nothing;
  /** The reader wants nothing more for now. */
  #is_full = false;
  /** As many messages are being handled as may be. */
  #is_held = false;
  #isDue = false;
  #is_corked = false;
  #ended = false;
  #failure: Error | undefined;

  constructor({ stream: socket, tcp }: Transport, options: MqttStreamOptions) {
    super({ allowHalfOpen: false });
    this.#socket = socket;
    this.#tcp = tcp;
    this.#frames = new FrameFilter({
      ...options,
      isHeld: () => this.#is_held,
      onPuback: (puback) => this.#onPuback?.(puback),
    });
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.once('end', () => {
      this.#ended = true;
      if (this.#waiting.length === 0 && !this.#is_held) this.push(null);
    });
    socket.once('error', (error) => this.destroy(error));
    // After an end, what has arrived is read first; `allowHalfOpen: false` then ends this side too.
    socket.once('close', () => {
      if (!this.#ended) this.destroy();
    });
    // It may have ended between its handshakes and this.
    if (socket.destroyed) this.destroy();
    else socket.resume();
  }

  /** Monotonic time of the last byte from the broker; now while this side does not read, since bytes may be waiting. */
  get last_received_ms(): number {
    // TLS and WebSocket pass on what is complete: a part of it is a sign of life, too.
    const bytes = this.#tcp?.bytesRead ?? 0;
    if (bytes !== this.#tcp_bytes) this.#last_received_ms = performance.now();
    this.#tcp_bytes = bytes;
    return this.#socket.isPaused() ? performance.now() : this.#last_received_ms;
  }

  /** Addresses of the connection, IPv4 in its own form; null where the transport has none, or before and after it. */
  get endpoints(): Endpoints | null {
    const { localAddress, remoteAddress } = this.#tcp ?? {};
    if (localAddress === undefined || remoteAddress === undefined) return null;
    return { local_ip: withoutZone(localAddress), remote_ip: withoutZone(remoteAddress) };
  }

  /** Why this side ended the connection, if it did. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Ends the connection for a reason. */
  fail(error: Error): void {
    this.#failure ??= error;
    this.destroy();
  }

  /** A message above the limit that is being read past. */
  get skipping(): Oversize | undefined {
    return this.#frames.skipping;
  }

  /** From now on, this handles the PUBACKs; until then, nothing was sent that one could answer. */
  handlePubacks(onPuback: (puback: PubackPacket) => void): void {
    this.#onPuback = onPuback;
  }

  /** Passes on and reads no further packet until `readOn`. */
  hold(): void {
    this.#is_held = true;
    this.#socket.pause();
  }

  readOn(): void {
    if (!this.#is_held) return;
    this.#last_received_ms = this.last_received_ms;
    this.#is_held = false;
    this.#continueLater();
  }

  /** Writes a whole packet; those of one turn of the event loop leave in one piece. */
  send(packet: Buffer): void {
    if (!this.#is_corked) {
      this.#is_corked = true;
      this.cork();
      process.nextTick(() => {
        this.#is_corked = false;
        this.uncork();
      });
    }
    this.write(packet);
  }

  #receive(chunk: Buffer): void {
    this.#last_received_ms = performance.now();
    if (!this.destroyed && !this.#ended) this.#passOn(chunk);
  }

  #passOn(chunk: Buffer): void {
    const end = this.#frames.bytes_left + turn_bytes_max;
    this.#waiting = chunk.length > end ? chunk.subarray(end) : nothing;
    try {
      const pieces = this.#frames.push(chunk.subarray(0, end));
      const [first = nothing] = pieces;
      const read = pieces.length > 1 ? Buffer.concat(pieces) : first;
      if (read.length > 0 && !this.push(read)) this.#is_full = true;
    } catch (error) {
      this.fail(error instanceof Error ? error : new Error(String(error)));
    }
    this.#goOn();
  }

  #goOn(): void {
    const isWaiting = this.#waiting.length > 0;
    if (this.#is_full || this.#is_held || isWaiting) this.#socket.pause();
    // What is decoded here or read past is not passed on, so that no reader asks for more.
    else this.#socket.resume();
    if (isWaiting) this.#continueLater();
    else if (this.#ended && !this.#is_held && !this.destroyed) this.push(null);
  }

  #continueLater(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      if (!this.destroyed && !this.#is_full && !this.#is_held) this.#passOn(this.#waiting);
    });
  }

  override _read(): void {
    this.#last_received_ms = this.last_received_ms;
    this.#is_full = false;
    if (this.#waiting.length > 0) this.#continueLater();
    else if (!this.#is_held) this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.sent_ms = performance.now();
    if (this.#socket.write(chunk)) done();
    else this.#onDrain(done);
  }

  /** MQTT.js writes a packet in several pieces, corked: they leave in one. */
  override _writev(
    chunks: readonly { readonly chunk: Buffer | string; readonly encoding: BufferEncoding }[],
    done: (error?: Error | null) => void,
  ): void {
    this._write(
      Buffer.concat(
        chunks.map(({ chunk, encoding }) =>
          typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk,
        ),
      ),
      'utf8',
      done,
    );
  }

  #onDrain(done: () => void): void {
    const socket = this.#socket;
    const finish = (): void => {
      socket.off('drain', finish);
      socket.off('close', finish);
      done();
    };
    socket.on('drain', finish);
    socket.on('close', finish);
  }

  override _final(done: (error?: Error | null) => void): void {
    if (this.#socket.destroyed) done();
    else this.#socket.end(() => done());
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.on('error', () => undefined);
    this.#socket.destroy();
    done(error);
  }
}

/** Without the zone of a link-local address, and without the prefix of an IPv4 address in a socket of IPv6. */
function withoutZone(address: string): string {
  const [ip = ''] = address.split('%');
  return plainIp(ip);
}
