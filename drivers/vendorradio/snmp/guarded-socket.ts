/**
 * The UDP socket of an SNMP session. net-snmp reads datagrams in the handler of the socket, where what it throws would end the
 * daemon, and takes what any host sends to its port for an answer of the agent.
 */
import { createSocket, type RemoteInfo, type Socket, type SocketOptions, type SocketType } from 'node:dgram';
import { lookup as resolve } from 'node:dns';
import { EventEmitter } from 'node:events';
import type { LookupFunction } from 'node:net';
import type { DeviceName } from '../../../src/toolkit/device/device-name.ts';

export interface SocketGuard {
  /** Interface-compatible with `node:dgram` as far as net-snmp uses it. */
  readonly dgram: { readonly createSocket: (type: SocketType) => GuardedSocket };
  /** Whether the datagram that is being read came from another host or port than those of the agent. */
  readonly isForeign: () => boolean;
  /** Whether a datagram is being read. */
  readonly isReading: () => boolean;
  /** Whether the agent has sent a datagram, such as its answer to the discovery of version 3. */
  readonly hasAnswered: () => boolean;
}

/** Opens the socket below; tests replace it by one without a network. */
export type OpenUdp = (options: SocketOptions) => Pick<Socket, 'on' | 'send' | 'ref' | 'unref' | 'close'>;

export interface GuardOptions {
  /** Of the agent; left out, the resolver of the operating system. */
  readonly name?: Pick<DeviceName, 'lookup' | 'reached'> | undefined;
  /** Left out, a socket of the operating system. */
  readonly openUdp?: OpenUdp | undefined;
}

/** `port`: of the agent. `onThrown` receives what the library threw while it read a datagram. */
export function guardSocket(
  port: number,
  onThrown: (error: unknown) => void,
  { name, openUdp = createSocket }: GuardOptions = {},
): SocketGuard {
  let from: RemoteInfo | undefined;
  let agent: string | undefined;
  let hasAnswered = false;
  const isForeign = (): boolean =>
    from !== undefined && (from.port !== port || plain(from.address) !== agent);
  return {
    isReading: () => from !== undefined,
    isForeign,
    hasAnswered: () => hasAnswered,
    dgram: {
      createSocket: (type) =>
        new GuardedSocket(type, openUdp, {
          lookup: name?.lookup ?? resolve,
          onAddress: (address) => {
            agent = plain(address);
            name?.reached(address);
          },
          read: (deliver, sender) => {
            from = sender;
            hasAnswered ||= !isForeign();
            try {
              deliver();
            } catch (error) {
              onThrown(error);
            } finally {
              from = undefined;
            }
          },
        }),
    },
  };
}

interface Hooks {
  readonly lookup: LookupFunction;
  /** The address to which the name of the agent leads. */
  readonly onAddress: (address: string) => void;
  readonly read: (deliver: () => void, sender: RemoteInfo) => void;
}

class GuardedSocket extends EventEmitter {
  readonly #socket: ReturnType<OpenUdp>;

  constructor(type: SocketType, openUdp: OpenUdp, { lookup, onAddress, read }: Hooks) {
    super();
    this.#socket = openUdp({
      type,
      lookup: (name, options, done) =>
        lookup(name, options, (error, found, family = 0) => {
          const address = typeof found === 'string' ? found : '';
          if (!error) onAddress(address);
          done(error, address, family);
        }),
    });
    this.#socket.on('message', (bytes, sender) => read(() => this.emit('message', bytes, sender), sender));
    this.#socket.on('error', (error) => this.emit('error', error));
    this.#socket.on('close', () => this.emit('close'));
  }

  send(
    ...args: [Buffer, number, number, number, string, (error: Error | null, bytes: number) => void]
  ): void {
    this.#socket.send(...args);
  }

  ref(): void {
    this.#socket.ref();
  }

  unref(): void {
    this.#socket.unref();
  }

  close(): void {
    this.#socket.close();
  }
}

/** Without the zone of a link-local address, which may be written as a name or a number. */
function plain(address: string): string {
  return address.split('%')[0] ?? address;
}
