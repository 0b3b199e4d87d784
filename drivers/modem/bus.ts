/**
 * The one place that knows dbus-native: a connection to a message bus that never reconnects by itself. What holds match rules
 * is the connection, so a run that ends leaves none behind.
 */
import { createClient, DBusError, type Message, type MessageBus, TimeoutError } from 'dbus-native';
import { createConnection, type Socket } from 'node:net';
import { DeviceUnreachable, messageOf } from '../../src/errors.ts';

/** What a method answered: the first value of the reply, or why it refuses. */
export type Reply =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly reason: string };

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
  /** Throws `DeviceUnreachable` when the connection is lost or nobody answers in time. Starts no service. */
  call(call: Call): Promise<Reply>;
  /** From now on signals that match come to the listener. */
  listen(rule: string): Promise<void>;
  /** Aborts with a `DeviceUnreachable` when the connection is lost. */
  readonly lost: AbortSignal;
}

/** All that ModemManager tells of eight modems is well below. */
const message_max_bytes = 4_194_304;
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

/** Connects and says hello. The connection is closed when `signal` aborts. Throws `DeviceUnreachable`. */
export async function openBus({ address, timeout_ms, signal, onSignal }: BusOptions): Promise<Bus> {
  const socket = await dial(address, { timeout_ms, signal });
  const losing = new AbortController();
  const lose = (why: string): void => {
    if (!losing.signal.aborted) losing.abort(new DeviceUnreachable(`D-Bus at ${address}: ${why}`));
    // The library waits for the far side when it closes, which a daemon that hangs never does.
    socket.destroy();
  };
  const close = (): void => lose('connection was closed by us');
  const client = createClient({
    stream: socket,
    // Cookies would be looked up in a home directory, which a service does not have.
    authMethods: ['EXTERNAL'],
    timeout: timeout_ms,
    maxMessageSize: message_max_bytes,
    returnBigInt: false,
    // We say hello ourselves: the library throws where nobody can catch it when the bus does not answer.
    direct: true,
  });
  client.connection.on('handlerError', (error) => lose(messageOf(error)));
  client.connection.on('error', (error) => lose(messageOf(error)));
  client.connection.on('close', () => {
    signal.removeEventListener('abort', close);
    lose('connection was closed by the bus');
  });
  client.connection.on('message', (message: Message) => {
    if (message.type !== signal_type) return;
    onSignal({ sender: message.sender ?? '', member: message.member ?? '', body: message.body ?? [] });
  });
  signal.addEventListener('abort', close, { once: true });
  if (signal.aborted) close();
  const call = async (about: Call): Promise<Reply> => invoke(client, about, losing.signal);
  try {
    demand(await call({ ...daemon, member: 'Hello' }), address);
  } catch (error) {
    lose('did not greet us');
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
  if (!reply.ok) throw new DeviceUnreachable(`D-Bus at ${address}: ${reply.reason}`);
}

async function invoke(client: MessageBus, about: Call, lost: AbortSignal): Promise<Reply> {
  lost.throwIfAborted();
  return new Promise((resolve, reject) => {
    client.invoke({ ...about, flags: no_auto_start }, (error, value: unknown) => {
      if (lost.aborted)
        reject(lost.reason instanceof Error ? lost.reason : new DeviceUnreachable('bus is lost'));
      else if (!error) resolve({ ok: true, value });
      else if (error instanceof TimeoutError) {
        reject(new DeviceUnreachable(`${about.destination} did not answer ${about.member} in time`));
      } else if (error instanceof DBusError && error.dbusName !== undefined) {
        resolve({ ok: false, reason: messageOf(error) });
      } else reject(new DeviceUnreachable(`${about.member} failed: ${messageOf(error)}`));
    });
  });
}

/** Opens the socket ourselves: an address could make the library run a program, and its own socket cannot be given up. */
async function dial(
  address: string,
  { timeout_ms, signal }: Pick<BusOptions, 'timeout_ms' | 'signal'>,
): Promise<Socket> {
  const [, kind, name = ''] = /^unix:(path|abstract)=(.+)$/u.exec(address) ?? [];
  const socket = createConnection({
    path: kind === 'abstract' ? `\0${name}` : name,
    timeout: timeout_ms,
  });
  return new Promise((resolve, reject) => {
    const fail = (why: string): void => {
      socket.destroy();
      reject(new DeviceUnreachable(`D-Bus at ${address}: ${why}`));
    };
    const onAbort = (): void => fail('stopped');
    signal.addEventListener('abort', onAbort, { once: true });
    socket.once('close', () => {
      signal.removeEventListener('abort', onAbort);
      fail('closed at once');
    });
    socket.once('timeout', () => fail(`no connection within ${timeout_ms} ms`));
    socket.once('error', (error) => fail(`${messageOf(error)}; is dbus-daemon running?`));
    socket.once('connect', () => {
      socket.removeAllListeners();
      socket.setTimeout(0);
      signal.removeEventListener('abort', onAbort);
      if (signal.aborted) fail('stopped');
      else resolve(socket);
    });
    if (signal.aborted) onAbort();
  });
}
