/** Accepts WebSocket handshakes at `GET /api/kits/{kit_id}/ws` and at `GET /api/ws`. */
import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { z } from 'zod';
import { KeyedSemaphore } from '../../platform/semaphore.ts';
import type { Changes } from '../changes.ts';
import { type Asker, type Gate, hasCookieOnly } from '../access/gate.ts';
import { demandScope, maySee, type Principal } from '../principal.ts';
import { isLocalProxy, networkOf } from '../access/proxies.ts';
import { RequestProblem } from '../api/problem.ts';
import type { Meter } from '../metrics.ts';
import type { Service } from '../service.ts';
import type { ServiceLog } from '../service-log.ts';
import { serveFleetSocket, serveSocket } from './sockets.ts';
import { SharedSummaries } from './summaries.ts';
import { Waiting } from './kit-follower.ts';
import { texts } from '../texts.ts';
import type { Store } from '../store/sql-store.ts';

/** The only subprotocol that is answered. */
const subprotocol = 'kit.v1';
const frame_bytes_max = 64 * 1024;
const sockets_max_default = 256;
/** Snapshots and first lists of one key that are read at a time. */
const answers_at_once = 1;

/** `sockets_per_key`: of one key, or of one address whose key is yet to come. A page has one, and a reload overlaps for a moment. */
export interface SocketLimits {
  readonly sockets_per_key: number;
  /** Kits that a subscription at `/api/ws` may name. */
  readonly kits_per_socket: number;
}
export const socket_limits_default: SocketLimits = { sockets_per_key: 16, kits_per_socket: 64 };

export interface UpgradeParts {
  readonly store: Store;
  readonly service: Service;
  readonly socket_limits: SocketLimits;
  readonly meter?: Meter | undefined;
  readonly changes: Changes;
  readonly gate: Gate;
  readonly log: ServiceLog;
  readonly signal: AbortSignal;
  /** Of all clients together; left out: 256. */
  readonly sockets_max?: number;
}

const address = /^\/api\/kits\/([^/?]+)\/ws\/?(?:\?.*)?$/u;
const fleetAddress = /^\/api\/ws\/?(?:\?.*)?$/u;

/**
 * Frames from this size on are compressed for clients that offer it. No state is kept between frames, so that an idle socket costs
 * no memory for it; `maxPayload` bounds inflated frames too.
 */
const deflate = {
  threshold: 1_024,
  concurrencyLimit: 4,
  serverNoContextTakeover: true,
  clientNoContextTakeover: true,
  zlibDeflateOptions: { level: 3, memLevel: 7 },
} as const;

/** Reads and writes the frames of all sockets. */
export function newSocketServer(): WebSocketServer {
  return new WebSocketServer({
    noServer: true,
    maxPayload: frame_bytes_max,
    perMessageDeflate: deflate,
    handleProtocols: (offered) => (offered.has(subprotocol) ? subprotocol : false),
  });
}

/** Names who has a socket until its key is known. Sockets from a proxy on this machine belong to many clients: each gets a separate name. */
function newStrangers(gate: Gate): (asker: Asker) => string {
  let proxied = 0;
  return (asker) => {
    // A proxy that is trusted names its clients; one on this machine that is not may have any number.
    const hidesClients = isLocalProxy(networkOf(asker.address)) && !gate.isTrusted(asker.address);
    return hidesClients ? `at proxy, ${(proxied += 1)}` : `at ${networkOf(gate.clientOf(asker))}`;
  };
}

/** Serves sockets on this server until the signal aborts. */
export function acceptSockets(server: Server, parts: UpgradeParts): void {
  const { gate, service, socket_limits, sockets_max = sockets_max_default } = parts;
  const { sockets_per_key, kits_per_socket } = socket_limits;
  const sockets = newSocketServer();
  const places = new KeyedSemaphore(sockets_per_key);
  const strangerAt = newStrangers(gate);
  /** Those whose key is yet to come, the oldest first. They give way: hosts without a key would keep all places. */
  const unknown = new Set<WebSocket>();
  const shared = new SharedSummaries(parts.changes, async (kit_ids) => service.summaries(kit_ids));
  const common = { ...parts, turns: new KeyedSemaphore(answers_at_once), waiting: new Waiting(parts.log) };
  const handshake = async (request: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> => {
    const asker = askerOf(gate, request);
    const { kit_id, principal } = await admit(gate, request.url ?? '', asker);
    // As a request about it: a kit that nobody has seen is none.
    if (principal && kit_id !== undefined) await service.requireKit(principal, kit_id);
    // A connection closed during the key lookup emits no further event and would stay counted.
    if (stream.destroyed) return;
    const [oldest] = unknown;
    const isFull = sockets.clients.size >= sockets_max;
    if (isFull && !oldest) throw new RequestProblem('unavailable', texts.too_many_sockets);
    let holder = principal?.key_id ?? strangerAt(asker);
    let leave = places.tryTake(holder);
    if (!leave) throw new RequestProblem('too-many-requests', texts.too_many_sockets);
    if (isFull && oldest) {
      unknown.delete(oldest);
      oldest.terminate();
    }
    stream.on('close', () => leave?.());
    sockets.handleUpgrade(request, stream, head, (socket) => {
      parts.meter?.sockets(sockets.clients.size);
      socket.on('close', () => parts.meter?.sockets(sockets.clients.size));
      const onKnown = ({ key_id }: Principal): boolean => {
        unknown.delete(socket);
        if (holder === key_id) return true;
        // A closed connection has left its place already.
        const own = stream.destroyed ? undefined : places.tryTake(key_id);
        if (!own) return false;
        leave?.();
        leave = own;
        holder = key_id;
        return true;
      };
      if (!principal) unknown.add(socket);
      socket.on('close', () => unknown.delete(socket));
      const known = { ...common, principal, asker, onKnown };
      const isKnown = async (holding: Principal): Promise<boolean> =>
        service.requireKit(holding, kit_id ?? '').then(
          () => true,
          () => false,
        );
      if (kit_id !== undefined) serveSocket(socket, { ...known, kit_id, isKnown });
      else {
        const list = service.listed.bind(service);
        const idsOf = service.kitIds.bind(service);
        serveFleetSocket(socket, { ...known, shared, idsOf, list, kits_max: kits_per_socket });
      }
    });
  };
  server.on('upgrade', (request: IncomingMessage, stream: Duplex, head: Buffer) => {
    stream.on('error', () => stream.destroy());
    handshake(request, stream, head).catch((error: unknown) =>
      refuse(stream, error instanceof RequestProblem ? error.status : 503),
    );
  });
}

/** Returns kit (undefined: the socket for many) and principal; without credentials in the handshake the first frame must authenticate. Throws `RequestProblem`. */
async function admit(gate: Gate, url: string, asker: Asker) {
  const { headers } = asker;
  if (!gate.serves(headers.host)) throw new RequestProblem('misdirected-request', texts.socket_host);
  const kit_id = kitIn(url);
  if (!gate.isOwnPage(asker) && !isAllowedOrigin(gate, headers.origin)) {
    throw new RequestProblem('forbidden', texts.socket_origin);
  }
  const isNamed = headers['x-api-key'] !== undefined || hasCookieOnly(headers);
  const principal = isNamed ? await gate.identify(asker) : undefined;
  if (principal) demandScope(principal, 'read');
  const isForeign = principal !== undefined && kit_id !== undefined && !maySee(principal, kit_id);
  if (isForeign) throw new RequestProblem('not-found', texts.socket_kit);
  return { kit_id, principal };
}

/** Returns the kit of the path; undefined: the socket for many. Throws `not-found`. */
function kitIn(url: string): string | undefined {
  const kit_id = z.uuid().safeParse(address.exec(url)?.[1]).data?.toLowerCase();
  if (!kit_id && !fleetAddress.test(url)) throw new RequestProblem('not-found', texts.socket_path);
  return kit_id;
}

/** Returns the client. The cookie of a page of another origin does not count: it needs a key. */
function askerOf(gate: Gate, { headers, socket }: IncomingMessage): Asker {
  const asker: Asker = { headers, address: socket.remoteAddress ?? '' };
  if (gate.isOwnPage(asker)) return asker;
  const { cookie: _, ...others } = headers;
  return { ...asker, headers: others };
}

function isAllowedOrigin(gate: Gate, origin: string | undefined): boolean {
  return origin !== undefined && gate.origins.includes(origin);
}

function refuse(stream: Duplex, status: number): void {
  // A client that never closes its side would hold the connection open.
  stream.once('finish', () => stream.destroy());
  stream.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
