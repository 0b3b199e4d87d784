/** A ground station behind an endpoint, over UDP or TCP, with the ids of QGroundControl unless others are given. */
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { parseDatagram, StreamFramer } from '../../drivers/mavlink/wire/framer.ts';
import type { FrameView } from '../../drivers/mavlink/wire/frame.ts';
import { blank, decode, type Decoded, encode, type Messages } from '../../drivers/mavlink/wire/messages.ts';

export interface StationOptions {
  readonly kind: 'udp' | 'tcp';
  /** Of the endpoint on the loopback. */
  readonly port: number;
  readonly sysid?: number;
  readonly compid?: number;
}

export class FakeStation {
  /** Frames as they arrived, in hexadecimal. */
  readonly frames: string[] = [];
  readonly messages: Decoded[] = [];
  isClosed = false;
  readonly #options: StationOptions;
  #udp: UdpSocket | undefined;
  #tcp: Socket | undefined;
  #seq = 0;

  constructor(options: StationOptions) {
    this.#options = options;
  }

  /** Connects; over UDP with a first heartbeat. */
  async start(): Promise<void> {
    const receive = (frame: FrameView): void => this.#receive(frame);
    const sink = { frame: receive, unknown: receive };
    if (this.#options.kind === 'udp') {
      const udp = createSocket('udp4');
      this.#udp = udp;
      udp.on('message', (bytes) => parseDatagram(bytes, sink));
      udp.bind(0, '127.0.0.1');
      await once(udp, 'listening');
    } else {
      const tcp = connect({ host: '127.0.0.1', port: this.#options.port });
      this.#tcp = tcp;
      const framer = new StreamFramer(sink);
      tcp.on('data', (chunk) => framer.push(chunk));
      tcp.on('error', () => undefined);
      tcp.on('close', () => {
        this.isClosed = true;
      });
      await once(tcp, 'connect');
    }
    this.beat();
  }

  /** Its address as the endpoint shows it. */
  get address(): string {
    return `127.0.0.1:${this.#udp?.address().port ?? this.#tcp?.localPort ?? 0}`;
  }

  beat(): void {
    const about = { type: 6, autopilot: 8, system_status: 4, mavlink_version: 3 };
    this.send('HEARTBEAT', { ...blank('HEARTBEAT'), ...about });
  }

  send<K extends keyof Messages>(name: K, fields: Messages[K]): Uint8Array {
    const { sysid = 255, compid = 190 } = this.#options;
    const bytes = encode(name, fields, { sysid, compid, seq: this.#seq });
    this.#seq = (this.#seq + 1) & 0xff;
    this.sendRaw(bytes);
    return bytes;
  }

  /** Sends a COMMAND_LONG. */
  command(command: number, target_system = 1, param1 = 0): Uint8Array {
    const to = { target_system, target_component: 1 };
    return this.send('COMMAND_LONG', { ...blank('COMMAND_LONG'), command, param1, ...to });
  }

  sendRaw(bytes: Uint8Array): void {
    this.#udp?.send(bytes, this.#options.port, '127.0.0.1', () => undefined);
    this.#tcp?.write(bytes);
  }

  /** Stops reading; only over TCP. */
  pause(): void {
    this.#tcp?.pause();
  }

  stop(): void {
    this.#udp?.close();
    this.#tcp?.destroy();
    this.#udp = undefined;
    this.#tcp = undefined;
  }

  #receive(frame: FrameView): void {
    this.frames.push(Buffer.from(frame.bytes).toString('hex'));
    const message = decode(frame);
    if (message) this.messages.push(message);
  }
}
