/** Accepts WebSocket handshakes at `GET /api/kits/{kit_id}/ws`. */
import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import { z } from 'zod';
import type { Changes } from './changes.ts';
import { type Asker, type Gate, hasCookieOnly } from '../access/gate.ts';
import { demandScope, maySee } from '../access/principal.ts';
import { RequestProblem } from '../api/problem.ts';
import type { Store } from '../store/store.ts';
import { serveSocket } from './live-socket.ts';

/** The only subprotocol that is answered. */
const subprotocol = 'kit.v1';
const frame_bytes_max = 64 * 1024;
export const sockets_max = 256;
/** Of one key, or of one address whose key is yet to come; a page has one, and a reload overlaps for a moment. */
export const sockets_of_key_max = 16;

export interface UpgradeParts {
  readonly store: Store;
  readonly changes: Changes;
  readonly gate: Gate;
  readonly signal: AbortSignal;
}

const address = /^\/api\/kits\/([^/?]+)\/ws\/?(?:\?.*)?$/u;

/** Serves sockets on this server until the signal aborts. */
export function acceptSockets(server: Server, parts: UpgradeParts): void {
  const { gate } = parts;
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: frame_bytes_max,
    perMessageDeflate: false,
    handleProtocols: (offered) => (offered.has(subprotocol) ? subprotocol : false),
  });
  const perKey = new Map<string, number>();
  const handshake = async (request: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> => {
    const asker: Asker = { headers: request.headers, address: request.socket.remoteAddress ?? '' };
    const { kit_id, principal } = await admit(gate, request.url ?? '', asker);
    // A connection closed during the key lookup emits no further event and would stay counted.
    if (stream.destroyed) return;
    if (sockets.clients.size >= sockets_max) throw new RequestProblem('unavailable', 'too many sockets');
    const key = principal?.key_id ?? `at ${asker.address}`;
    const open = perKey.get(key) ?? 0;
    if (open >= sockets_of_key_max) throw new RequestProblem('too-many-requests', 'too many sockets');
    perKey.set(key, open + 1);
    stream.on('close', () => {
      const left = (perKey.get(key) ?? 1) - 1;
      if (left > 0) perKey.set(key, left);
      else perKey.delete(key);
    });
    sockets.handleUpgrade(request, stream, head, (socket) => {
      serveSocket(socket, { ...parts, kit_id, principal, asker });
    });
  };
  server.on('upgrade', (request: IncomingMessage, stream: Duplex, head: Buffer) => {
    stream.on('error', () => stream.destroy());
    handshake(request, stream, head).catch((error: unknown) =>
      refuse(stream, error instanceof RequestProblem ? error.status : 503),
    );
  });
}

/** Returns kit and principal; without credentials in the handshake the first frame must authenticate. Throws `RequestProblem`. */
async function admit(gate: Gate, url: string, asker: Asker) {
  const { headers } = asker;
  if (!gate.serves(headers.host)) throw new RequestProblem('misdirected-request', 'host name not served');
  const kit_id = z.uuid().safeParse(address.exec(url)?.[1]).data?.toLowerCase();
  if (!kit_id) throw new RequestProblem('not-found', 'no socket at this path');
  if (!gate.isOwnPage(asker)) throw new RequestProblem('forbidden', 'request from another origin');
  const isNamed = headers['x-api-key'] !== undefined || hasCookieOnly(headers);
  const principal = isNamed ? await gate.identify(asker) : undefined;
  if (principal) demandScope(principal, 'read');
  if (principal && !maySee(principal, kit_id)) throw new RequestProblem('not-found', 'kit not found');
  return { kit_id, principal };
}

function refuse(stream: Duplex, status: number): void {
  // A client that never closes its side would hold the connection open.
  stream.once('finish', () => stream.destroy());
  stream.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
