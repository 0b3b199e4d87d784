/** Limits the requests that one packet brings to an HTTP server of Node.js. */
import type { Duplex } from 'node:stream';

/** A client may send requests without waiting for answers (RFC 9112, section 9.3.2); few do, and not many. */
const requests_a_turn_max = 9;
/** Result of `onIncoming` for a request that changes the protocol: the parser stops reading. */
const read_no_more = 2;

/** Node.js keeps the parser of a connection at its socket. */
type Connection = Duplex & { parser?: { onIncoming: ((...request: unknown[]) => number) | null } | null };

/**
 * Closes a new connection that sends more requests in one turn of the event loop, those included that Node.js refuses itself. The rest
 * of the packet, 3,600 requests perhaps, is not read: to make and refuse each takes 30 us. To be called after the server has seen it.
 */
export function limitRequests(socket: Connection): void {
  const { parser } = socket;
  const incoming = parser?.onIncoming;
  if (!parser || !incoming) return;
  let in_this_turn = 0;
  parser.onIncoming = (...request) => {
    if (in_this_turn === 0) setImmediate(() => (in_this_turn = 0));
    in_this_turn += 1;
    if (in_this_turn > requests_a_turn_max) socket.destroy();
    return socket.destroyed ? read_no_more : incoming(...request);
  };
}
