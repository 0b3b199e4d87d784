/** The control socket: HTTP on a Unix socket of this machine, between the command line and the daemon. */
import { chmod, chown, mkdir, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { messageOf } from '../../platform/errors.ts';
import { ConnectionGuard, noteRequests, type Share } from '../../platform/connection-guard.ts';
import { aborted, within } from '../../platform/time.ts';
import type { LocalApi } from './api.ts';
import { answerBy } from './exchange.ts';
import { localRoutes, refusal } from './routes.ts';
import { texts } from './texts.ts';
import { peerOf, type SocketPeer } from '../../platform/linux/socket-user.ts';

interface ListenOptions {
  readonly socket: string;
  /** Group of the socket; the group of the process when undefined. */
  readonly gid: number | undefined;
  /** Left out: refused connections are not logged. */
  readonly log?: SharesLog | undefined;
  readonly signal: AbortSignal;
}

/** Only members of the socket's group may use it. */
const socket_mode = 0o660;
/** sockaddr_un holds 108 bytes with the final zero. */
const socket_path_bytes_max = 107;

/** Each connection may keep a megabyte waiting: a body, or a tail that is not read. The shares add up to less. */
const connections_max = 96;
/** From this many on, the oldest connection without a request gives way to a new one. */
const pressure_connections = 48;
/** For a whole request, longer than any client waits, also while the daemon stalls; a tail is an answer, and lasts. */
const request_ms = 30_000;
const check_every_ms = 2_000;

/** Answers that are under way may end in this time. */
const farewell_ms = 500;

/**
 * Listens until `signal` aborts; resolves once it listens, with a promise that resolves when the socket is closed and
 * removed. Rejects when another daemon answers on the socket, or when it cannot be created.
 */
export async function serveLocal(
  api: LocalApi,
  { socket, gid, log, signal }: ListenOptions,
): Promise<{ closed: Promise<void> }> {
  if (Buffer.byteLength(socket) > socket_path_bytes_max) {
    throw new Error(`the path of the control socket ${socket} is too long; choose a shorter runtime_dir`);
  }
  await mkdir(dirname(socket), { recursive: true });
  await refuseSecond(socket);
  await rm(socket, { force: true });
  const server = createServer(
    { requestTimeout: request_ms, headersTimeout: request_ms, connectionsCheckingInterval: check_every_ms },
    answerBy(localRoutes(api, signal), refusal),
  );
  server.maxConnections = connections_max;
  const guard = new ConnectionGuard({
    pressure_connections,
    onFull: ({ name, connections_max: limit }) =>
      log?.warn({ of: name, connections: limit }, texts.log_shares),
  });
  server.on('connection', (connection: Socket) => {
    void admit(connection, guard);
  });
  noteRequests(server, guard);
  await listen(server, socket);
  if (gid !== undefined) await chown(socket, -1, gid);
  await chmod(socket, socket_mode);
  return { closed: closeOnAbort(server, socket, signal) };
}

async function admit(connection: Socket, guard: ConnectionGuard): Promise<void> {
  const shares = await sharesOf(connection);
  if (!connection.destroyed) guard.open(connection, shares);
}

async function listen(server: Server, socket: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(new Error(`cannot create the control socket ${socket}: ${messageOf(error)}`, { cause: error })),
    );
    server.listen(socket, resolve);
  });
}

async function closeOnAbort(server: Server, socket: string, signal: AbortSignal): Promise<void> {
  await aborted(signal);
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  await within(farewell_ms, closed);
  server.closeAllConnections();
  await closed;
  await rm(socket, { force: true });
}

/** Rejects when another daemon answers on the socket; called before anything of this one starts. */
export async function refuseSecond(socket: string): Promise<void> {
  if (await isAnswered(socket)) throw new Error(texts.already_listening(socket));
}

/** Whether a process accepts connections: a socket that a killed daemon left behind refuses them. */
export async function isAnswered(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(socket);
    const finish = (answered: boolean) => (): void => {
      probe.destroy();
      resolve(answered);
    };
    probe.once('connect', finish(true));
    probe.once('error', finish(false));
  });
}

interface SharesLog {
  warn(facts: object, sentence: string): void;
}

export const process_connections_max = 16;
export const user_connections_max = 32;
/** Of all users but root: the rest is reserved for root. */
export const others_connections_max = 56;

/** The shares of the process that connected. Never rejects: unidentified processes have a share together. */
async function sharesOf(socket: Socket): Promise<readonly Share[]> {
  return sharesFor(await peerOf(socket).catch(() => null));
}

export function sharesFor(peer: SocketPeer | null): readonly Share[] {
  const user = { name: `user ${peer?.uid ?? 'unknown'}`, connections_max: user_connections_max };
  const others = { name: 'users other than root', connections_max: others_connections_max };
  const ofUser = peer?.uid === 0 ? [user] : [user, others];
  return peer
    ? [{ name: `process ${peer.pid}`, connections_max: process_connections_max }, ...ofUser]
    : ofUser;
}
