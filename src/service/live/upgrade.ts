/** Takes the handshakes of WebSockets at `GET /api/kits/{kit_id}/ws`. */
import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import { z } from 'zod';
import type { Changes } from '../changes.ts';
import { type Asker, type Gate, hasCookieOnly } from '../gate.ts';
import { maySee } from '../principal.ts';
import { RequestProblem } from '../problem.ts';
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

const address = /^\/api\/kits\/([^/?]+)\/ws(?:\?.*)?$/u;

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
    const kit_id = z
      .uuid()
      .safeParse(address.exec(request.url ?? '')?.[1])
      .data?.toLowerCase();
    const asker: Asker = { headers: request.headers, address: request.socket.remoteAddress ?? '' };
    if (!gate.serves(asker.headers.host)) return refuse(stream, 421);
    if (!kit_id) return refuse(stream, 404);
    if (!gate.isOwnPage(asker)) return refuse(stream, 403);
    if (sockets.clients.size >= sockets_max) return refuse(stream, 503);
    const principal = await principalOf(gate, asker);
    if (principal && !maySee(principal, kit_id)) return refuse(stream, 404);
    const key = principal?.key_id ?? `at ${asker.address}`;
    const open = perKey.get(key) ?? 0;
    if (open >= sockets_of_key_max) return refuse(stream, 429);
    perKey.set(key, open + 1);
    stream.on('close', () => {
      const left = (perKey.get(key) ?? 1) - 1;
      if (left > 0) perKey.set(key, left);
      else perKey.delete(key);
    });
    sockets.handleUpgrade(request, stream, head, (socket) => {
      serveSocket(socket, { ...parts, kit_id, principal, asker });
    });
    return undefined;
  };
  server.on('upgrade', (request: IncomingMessage, stream: Duplex, head: Buffer) => {
    stream.on('error', () => stream.destroy());
    handshake(request, stream, head).catch((error: unknown) =>
      refuse(stream, error instanceof RequestProblem ? error.status : 503),
    );
  });
}

/** By key or cookie; undefined when the handshake brings neither, and the first frame must tell. */
async function principalOf(gate: Gate, asker: Asker) {
  if (asker.headers['x-api-key'] !== undefined || hasCookieOnly(asker.headers)) return gate.identify(asker);
  return undefined;
}

function refuse(stream: Duplex, status: number): void {
  stream.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
