/** Accepts WebSocket handshakes at `GET /api/kits/{kit_id}/ws` and at `GET /api/ws`. */
import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { z } from 'zod';
import { type InTurn, KeyedSemaphore } from '../../platform/semaphore.ts';
import type { Changes } from '../changes.ts';
import { type Asker, type Gate, hasCookieOnly } from '../access/gate.ts';
import { demandScope, maySee, type Principal } from '../principal.ts';
import { isLocalProxy, networkOf } from '../access/proxies.ts';
import { RequestProblem } from '../api/problem.ts';
import { problemAnswer } from '../api/problem-answer.ts';
import type { Meter } from '../metrics.ts';
import type { Service } from '../service.ts';
import type { ServiceLog } from '../service-log.ts';
import { SharedSummaries, SummaryFollower } from './summaries.ts';
import { KitFollower, Waiting } from './kit-follower.ts';
import { texts } from '../texts.ts';
import type { Store } from '../store/sql-store.ts';
import { clientFrame, fleetClientFrame } from '../api/frames.ts';
import { AlarmFollower } from './alarm-follower.ts';
import { type SessionParts, SocketSession } from './socket-session.ts';

interface LiveParts extends SessionParts {
  /** Undefined: many, which each subscription names. */
  readonly kit_id: string | undefined;
  readonly service: Service;
  readonly store: Store;
  readonly changes: Changes;
  readonly shared: SharedSummaries;
  /** Of all sockets. */
  readonly waiting: Waiting;
  /** Of the whole answers. */
  readonly turns: KeyedSemaphore;
  /** Kits of one subscription. */
  readonly kits_max: number;
}

type Subscription = Extract<z.output<typeof fleetClientFrame>, { type: 'subscribe' }>;

/** The socket of one kit, or of many: the first is one whose subscriptions name its kit, and whose frames do not. */
class LiveSocket {
  readonly #parts: LiveParts;
  readonly #session: SocketSession;
  #subscription = new AbortController();
  #summaries: SummaryFollower | undefined;
  #alarms: AlarmFollower | undefined;
  /** The one whose turn is next comes first: each gets one frame in turn, so that a busy one delays no other. */
  #kits: readonly KitFollower[] = [];

  /** Serves the socket until it is closed, by either side. */
  constructor(socket: WebSocket, parts: LiveParts) {
    this.#parts = parts;
    this.#session = new SocketSession(socket, parts, {
      read: (frame) => this.#read(frame),
      isOpenTo: async (principal) => this.#isOpenTo(principal),
      isDue: () => [this.#alarms, this.#summaries, ...this.#kits].some((each) => each?.isDue),
      writeNext: async () => this.#writeNext(),
    });
    this.#session.start();
  }

  #read(frame: unknown) {
    const { kit_id } = this.#parts;
    const { data } = (kit_id === undefined ? fleetClientFrame : clientFrame).safeParse(frame);
    if (data?.type !== 'subscribe') return data;
    const wanted = { summaries: false, alarms: false, kits: kit_id === undefined ? [] : [kit_id], ...data };
    return { type: data.type, apply: () => this.#subscribe(wanted) };
  }

  async #isOpenTo(principal: Principal): Promise<boolean> {
    const { kit_id, service } = this.#parts;
    if (kit_id === undefined) return true;
    return service.requireKit(principal, kit_id).then(
      () => true,
      () => false,
    );
  }

  #subscribe({ summaries, alarms, kits, assets }: Subscription): void {
    const { principal, closed } = this.#session;
    if (!principal) return;
    const ids = [...new Set(kits)];
    const { kits_max, turns } = this.#parts;
    if (ids.length > kits_max || !ids.every((kit_id) => maySee(principal, kit_id))) {
      this.#session.forbid(ids.length > kits_max ? `at most ${kits_max} kits` : 'kit not found');
      return;
    }
    this.#subscription.abort();
    this.#subscription = new AbortController();
    const parts = {
      ...this.#parts,
      principal,
      wanted: assets === '*' ? assets : new Set(assets),
      inTurn: (async (work) => turns.run(principal.key_id, work)) satisfies InTurn,
      wake: () => void this.#session.pump(),
      signal: AbortSignal.any([this.#subscription.signal, closed]),
    };
    this.#kits = ids.map((kit_id) => new KitFollower({ ...parts, kit_id }));
    this.#summaries = summaries ? new SummaryFollower(parts) : undefined;
    this.#alarms = alarms ? new AlarmFollower(parts) : undefined;
  }

  /** Alarms go first, then summaries, which are one frame a second at most. */
  async #writeNext(): Promise<void> {
    const list = [this.#alarms, this.#summaries].find((each) => each?.isDue);
    if (list) {
      this.#session.send(await list.next());
      return;
    }
    const at = this.#kits.findIndex(({ isDue }) => isDue);
    const follower = this.#kits[at];
    if (!follower) return;
    this.#kits = [...this.#kits.slice(at + 1), ...this.#kits.slice(0, at + 1)];
    const name = this.#parts.kit_id === undefined && { kit_id: follower.kit_id };
    for (const frame of await follower.next()) this.#session.send({ ...frame, ...name });
  }
}

/** The only subprotocol that is answered. */
const subprotocol = 'kit.v1';
const frame_bytes_max = 64 * 1024;
const sockets_max_default = 256;
/** Another socket may have been closed by then. */
const busy = { retry_after_s: 5 } as const;
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
  const sockets = newSocketServer();
  const places = new KeyedSemaphore(socket_limits.sockets_per_key);
  const strangerAt = newStrangers(gate);
  /** Those whose key is yet to come, the oldest first. They give way: hosts without a key would keep all places. */
  const unknown = new Set<WebSocket>();
  const common = {
    ...parts,
    kits_max: socket_limits.kits_per_socket,
    shared: new SharedSummaries(parts.changes, async (kit_ids) => service.summaries(kit_ids)),
    turns: new KeyedSemaphore(answers_at_once),
    waiting: new Waiting(parts.log),
  };
  const handshake = async (request: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> => {
    const asker = askerOf(gate, request);
    const { kit_id, principal } = await admit(gate, request.url ?? '', asker);
    // As a request about it: a kit that nobody has seen is none.
    if (principal && kit_id !== undefined) await service.requireKit(principal, kit_id);
    // A connection closed during the key lookup emits no further event and would stay counted.
    if (stream.destroyed) return;
    const [oldest] = unknown;
    const isFull = sockets.clients.size >= sockets_max;
    if (isFull && !oldest) throw new RequestProblem('unavailable', texts.too_many_sockets, busy);
    let holder = principal?.key_id ?? strangerAt(asker);
    let leave = places.tryTake(holder);
    if (!leave) throw new RequestProblem('too-many-requests', texts.too_many_sockets, busy);
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
      void new LiveSocket(socket, { ...common, kit_id, principal, asker, onKnown });
    });
  };
  server.on('upgrade', (request: IncomingMessage, stream: Duplex, head: Buffer) => {
    stream.on('error', () => stream.destroy());
    handshake(request, stream, head).catch((error: unknown) => refuse(stream, request, error, parts.log));
  });
}

/** Returns kit (undefined: the socket for many) and principal; without credentials in the handshake the first frame must authenticate. Throws `RequestProblem`. */
async function admit(gate: Gate, url: string, asker: Asker) {
  const { headers } = asker;
  if (!gate.serves(headers.host)) {
    throw new RequestProblem('misdirected-request', texts.host_not_served(headers.host ?? ''));
  }
  const kit_id = kitIn(url);
  if (!gate.isOwnPage(asker) && !isAllowedOrigin(gate, headers.origin)) {
    throw new RequestProblem('forbidden', texts.foreign_origin(headers));
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

/** Says why, as any other request is told: clients that are told nothing try again at once (beyond-all-reason/bar-lobby#715). */
function refuse(stream: Duplex, { url = '' }: IncomingMessage, error: unknown, log: ServiceLog): void {
  const path = url.replace(/\?.*$/u, '');
  const { status, headers, body } = problemAnswer(error, { request_id: randomUUID(), path }, log);
  const lines = Object.entries({
    ...headers,
    Connection: 'close',
    'Content-Length': Buffer.byteLength(body),
  });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  // A client that never closes its side would hold the connection open.
  stream.once('finish', () => stream.destroy());
  stream.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}\r\n${body}`);
}
