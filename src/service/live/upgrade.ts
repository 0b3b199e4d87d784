/** Takes the handshakes of WebSockets at `GET /api/kits/{kit_id}/ws`. */
import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import { z } from 'zod';
import type { Changes } from '../changes.ts';
import { maySee, type Principal } from '../principal.ts';
import type { Store } from '../store/store.ts';
import { serveSocket } from './live-socket.ts';

/** The only subprotocol that is answered. */
const subprotocol = 'kit.v1';
const frame_bytes_max = 64 * 1024;
export const sockets_max = 256;
/** Of one key; a page has one, and a reload overlaps for a moment. */
export const sockets_of_key_max = 16;

export interface UpgradeParts {
  readonly store: Store;
  readonly changes: Changes;
  /** By a key that came in a frame. Throws. */
  readonly identifyKey: (api_key: string) => Promise<Principal>;
  /** By the headers of the handshake: undefined when they name nobody. Throws for a wrong key. */
  readonly identifyHandshake: (request: IncomingMessage) => Promise<Principal | undefined>;
  /** Whether a page of this origin may open sockets. Handshakes without an origin come from no page. */
  readonly isOwnOrigin: (request: IncomingMessage) => boolean;
  readonly signal: AbortSignal;
}

const address = /^\/api\/kits\/([^/?]+)\/ws(?:\?.*)?$/u;

/** Serves sockets on this server until the signal aborts. */
export function acceptSockets(server: Server, parts: UpgradeParts): void {
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: frame_bytes_max,
    perMessageDeflate: false,
    handleProtocols: (offered) => (offered.has(subprotocol) ? subprotocol : false),
  });
  const perKey = new Map<string, number>();
  const handshake = async (request: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> => {
    const kit_id = z.uuid().safeParse(address.exec(request.url ?? '')?.[1]).data;
    if (!kit_id) return refuse(stream, 404);
    if (!parts.isOwnOrigin(request)) return refuse(stream, 403);
    if (sockets.clients.size >= sockets_max) return refuse(stream, 503);
    const principal = await parts.identifyHandshake(request);
    if (principal && !maySee(principal, kit_id)) return refuse(stream, 404);
    const key = principal?.key_id ?? '';
    if ((perKey.get(key) ?? 0) >= sockets_of_key_max) return refuse(stream, 429);
    sockets.handleUpgrade(request, stream, head, (socket) => {
      perKey.set(key, (perKey.get(key) ?? 0) + 1);
      socket.on('close', () => perKey.set(key, (perKey.get(key) ?? 1) - 1));
      serveSocket(socket, { ...parts, kit_id: kit_id.toLowerCase(), principal, identify: parts.identifyKey });
    });
    return undefined;
  };
  server.on('upgrade', (request: IncomingMessage, stream: Duplex, head: Buffer) => {
    stream.on('error', () => stream.destroy());
    handshake(request, stream, head).catch(() => refuse(stream, 401));
  });
}

function refuse(stream: Duplex, status: number): void {
  stream.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
