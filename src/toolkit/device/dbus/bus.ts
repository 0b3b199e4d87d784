/**
 * A connection to a message bus over dbus-native, without automatic reconnection. Match rules belong to the connection, so a
 * run that ends leaves none behind. No file outside of this folder imports dbus-native.
 */
import {
  ConnectionClosedError,
  createClient,
  DBusError,
  type Message,
  type MessageBus,
  TimeoutError,
} from 'dbus-native';
import { DeviceUnreachable, hasCode, messageOf } from '../../../platform/errors.ts';
import { cleanText } from '../../../platform/foreign-text.ts';

/** Reply of a method: its first value, or the reason of its error and, where the service answered, the name of the error. */
export type Reply =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly reason: string; readonly error?: string };

export interface Call {
  readonly destination: string;
  readonly path: string;
  readonly interface: string;
  readonly member: string;
  readonly signature?: string;
  readonly body?: unknown[];
}

/** A signal of the bus, its body unread. */
export interface BusSignal {
  readonly sender: string;
  readonly member: string;
  readonly body: readonly unknown[];
}

export interface Bus {
  /** Throws `DeviceUnreachable` when the connection is lost or no reply arrives in time. Starts no service. */
  call(call: Call): Promise<Reply>;
  /** Delivers matching signals to the listener from now on. */
  listen(rule: string): Promise<void>;
  /** Aborts with a `DeviceUnreachable` when the connection is lost. */
  readonly lost: AbortSignal;
}

/** The state of eight modems in ModemManager is well below. */
const message_max_bytes = 1_048_576;
/** Of a foreign answer to a login, in a sentence. */
const answer_chars_max = 60;
/** Of the words with which a service refuses a call. */
const refusal_chars_max = 300;
const signal_type = 4;
const no_auto_start = 2;
/** The bus itself. */
export const daemon = {
  destination: 'org.freedesktop.DBus',
  path: '/org/freedesktop/DBus',
  interface: 'org.freedesktop.DBus',
} as const;

interface BusOptions {
  readonly address: string;
  /** For the connection, and for each answer. */
  readonly timeout_ms: number;
  readonly signal: AbortSignal;
  readonly onSignal: (signal: BusSignal) => void;
}

/** Connects and sends Hello. The connection is closed when `signal` aborts. Throws `DeviceUnreachable`. */
export async function openBus({ address, timeout_ms, signal, onSignal }: BusOptions): Promise<Bus> {
  if (signal.aborted) throw new DeviceUnreachable(texts.bus_failed(address, 'stopped'));
  const losing = new AbortController();
  const lose = (why: string): void => {
    if (!losing.signal.aborted) losing.abort(new DeviceUnreachable(texts.bus_failed(address, why)));
    // On close the library waits for the peer, which a hung daemon never answers.
    client.connection.stream.destroy();
  };
  const close = (): void => lose('connection closed');
  const client = createClient({
    busAddress: address,
    // Cookies would be looked up in a home directory, which a service does not have.
    authMethods: ['EXTERNAL'],
    timeout: timeout_ms,
    maxMessageSize: message_max_bytes,
    returnBigInt: false,
    // Hello is sent below: when the bus does not answer, the library's own Hello throws outside any handler.
    direct: true,
  });
  client.connection.on('handlerError', (error) => lose(messageOf(error)));
  client.connection.on('error', (error) => lose(connectionFault(error)));
  client.connection.on('close', () => {
    signal.removeEventListener('abort', close);
    lose(texts.bus_closed);
  });
  client.connection.on('message', (message: Message) => {
    if (message.type !== signal_type) return;
    onSignal({ sender: message.sender ?? '', member: message.member ?? '', body: message.body ?? [] });
  });
  signal.addEventListener('abort', close, { once: true });
  const call = async (about: Call): Promise<Reply> => invoke(client, about, losing.signal);
  try {
    demand(await call({ ...daemon, member: 'Hello' }), address);
  } catch (error) {
    lose(texts.no_hello);
    throw error;
  }
  return {
    call,
    lost: losing.signal,
    async listen(rule) {
      demand(await call({ ...daemon, member: 'AddMatch', signature: 's', body: [rule] }), address);
    },
  };
}

function demand(reply: Reply, address: string): void {
  if (!reply.ok) throw new DeviceUnreachable(texts.bus_failed(address, reply.reason));
}

async function invoke(client: MessageBus, about: Call, lost: AbortSignal): Promise<Reply> {
  lost.throwIfAborted();
  return new Promise((resolve, reject) => {
    client.invoke({ ...about, flags: no_auto_start }, (error, value: unknown) => {
      if (lost.aborted)
        reject(lost.reason instanceof Error ? lost.reason : new DeviceUnreachable(texts.bus_lost));
      else if (!error) resolve({ ok: true, value });
      else if (error instanceof ConnectionClosedError) reject(new DeviceUnreachable(texts.bus_closed));
      else if (error instanceof TimeoutError) {
        reject(new DeviceUnreachable(texts.call_timeout(about.destination, about.member)));
      } else if (error instanceof DBusError && error.dbusName !== undefined) {
        const reason = cleanText(messageOf(error).slice(0, refusal_chars_max)).trim();
        resolve({ ok: false, reason, error: error.dbusName });
      } else reject(new DeviceUnreachable(texts.call_failed(about.member, messageOf(error))));
    });
  });
}

/** The library ends a login with the last line that it received; what has no system call is a message that it cannot read. */
function connectionFault(error: Error): string {
  const reason = messageOf(error);
  const [, answer] =
    /^No authentication methods left to try\. Last server response: (.*)$/su.exec(reason) ?? [];
  if (answer !== undefined) return texts.not_bus(cleanText(answer.slice(0, answer_chars_max)).trim());
  if (!('syscall' in error)) return texts.unreadable(reason);
  if (error.syscall !== 'connect') return reason;
  return hasCode(error, 'ENOENT') ? texts.no_socket : texts.bus_error(reason);
}

// Sentences about the message bus that people read; tests refer to them by name.

export const texts = {
  bus_failed: (address: string, reason: string) => `D-Bus at ${address}: ${reason}`,
  bus_closed: 'connection closed by the bus',
  bus_lost: 'bus connection lost',
  no_hello: 'no reply to Hello',
  bus_error: (reason: string) => `${reason}; check that dbus-daemon runs`,
  no_socket: 'no such socket; check that dbus-daemon runs, and the option bus',
  not_bus: (answer: string) =>
    `answers with something that is not D-Bus, or refuses this user (${answer}); check the option bus`,
  unreadable: (reason: string) =>
    `rejected a message (${reason}); restart the program that sends it, or check the option bus`,
  call_timeout: (destination: string, member: string) =>
    `${destination} did not answer ${member} in time; check that it runs, and restart it if it hangs`,
  call_failed: (member: string, reason: string) => `${member} failed: ${reason}`,
} as const;
