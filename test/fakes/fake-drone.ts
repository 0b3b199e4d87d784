/** The simulated vehicle in the hands of a test: it refuses, falls silent, loses packets, starts anew and talks nonsense. */
import { createSocket } from 'node:dgram';
import { EventEmitter } from 'node:events';
import type { Decoded, Messages } from '../../drivers/mavlink/messages.ts';
import type { SignFrame } from '../../drivers/mavlink/signing.ts';
import { type Answer } from '../../drivers/mavlink/sim/answers.ts';
import { type SimOptions, SimVehicle } from '../../drivers/mavlink/sim/sim-vehicle.ts';

type CommandMessage = Extract<Decoded, { readonly name: 'COMMAND_INT' | 'COMMAND_LONG' }>;
/** What the vehicle does with one command. `obey`: what the autopilot would do. */
type Reaction = (command: CommandMessage['fields'], obey: () => Answer | undefined) => Answer | undefined;

export const field = { lat: 47.397742, lon: 8.545594, alt_amsl_m: 488 } as const;

export class FakeDrone extends SimVehicle {
  /** Commands that arrived, by number. Requests for messages are not among them. */
  readonly commands: CommandMessage['fields'][] = [];
  /** Heartbeats that arrived, with who sent them. */
  readonly beats: {
    readonly sysid: number;
    readonly compid: number;
    readonly fields: Messages['HEARTBEAT'];
  }[] = [];
  /** Datagrams that arrived. */
  received = 0;
  /** Answers instead of the autopilot. */
  react: Reaction | undefined;
  silent = false;
  /** Each so many'th frame is lost on the way out; 0: none. */
  lose_every = 0;
  sign: SignFrame | undefined;
  readonly #arrived = new EventEmitter<{ command: [CommandMessage['fields']] }>();
  readonly #stopping: AbortController;
  #sent = 0;

  constructor(options: Pick<SimOptions, 'port'> & Partial<SimOptions>) {
    const stopping = new AbortController();
    super(
      {
        autopilot: 'ardupilot',
        sysid: 1,
        uid: '00000000c0ffee01',
        host: '127.0.0.1',
        home: field,
        airborne: false,
        ...options,
      },
      stopping.signal,
    );
    this.#stopping = stopping;
  }

  stop(): void {
    this.#stopping.abort();
  }

  /** Resolves with the next command of this number. */
  async next(command: number): Promise<CommandMessage['fields']> {
    return new Promise((resolve) => {
      const listener = (fields: CommandMessage['fields']): void => {
        if (fields.command !== command) return;
        this.#arrived.off('command', listener);
        resolve(fields);
      };
      this.#arrived.on('command', listener);
    });
  }

  /** Bytes that are no MAVLink, from the vehicle's own address. */
  babble(bytes: Uint8Array): void {
    super.transmit(bytes);
  }

  protected override signer(): SignFrame | undefined {
    return this.sign;
  }

  protected override transmit(bytes: Uint8Array): void {
    this.#sent += 1;
    const is_lost = this.lose_every > 0 && this.#sent % this.lose_every === 0;
    if (!this.silent && !is_lost) super.transmit(bytes);
  }

  protected override receive(bytes: Uint8Array): void {
    this.received += 1;
    if (!this.silent) super.receive(bytes);
  }

  protected override hear(message: Decoded, from: { readonly sysid: number; readonly compid: number }): void {
    if (message.name === 'HEARTBEAT') this.beats.push({ ...from, fields: message.fields });
    super.hear(message, from);
  }

  protected override obey(message: CommandMessage): Answer | undefined {
    const { fields } = message;
    const obey = (): Answer | undefined => super.obey(message);
    if (fields.command === 511 || fields.command === 512) return obey();
    this.commands.push(fields);
    this.#arrived.emit('command', fields);
    return this.react ? this.react(fields, obey) : obey();
  }
}

/** A UDP port that was free a moment ago. */
export async function freeUdpPort(): Promise<number> {
  const socket = createSocket('udp4');
  await new Promise<void>((resolve) => {
    socket.bind(0, '127.0.0.1', resolve);
  });
  const { port } = socket.address();
  await new Promise<void>((resolve) => {
    socket.close(() => resolve());
  });
  return port;
}
