/** Limits the requests under way of each client behind a trusted proxy, whose connections are those of all its clients. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { problemDocument, RequestProblem } from '../../api/problem.ts';
import type { Gate } from '../../access/gate.ts';
import { Places } from '../../access/places.ts';
import { texts } from '../../texts.ts';
import { address_connections_max, networkOf } from './client-shares.ts';

const retry_after_s = 1;

export class ClientRequests {
  readonly #gate: Gate;
  /** A client that connects itself has as many connections, each with one request at a time. */
  readonly #places = new Places(address_connections_max);

  constructor(gate: Gate) {
    this.#gate = gate;
  }

  /** Whether the request may begin; a refused one is answered. */
  admit({ headers, socket }: IncomingMessage, response: ServerResponse): boolean {
    const address = socket.remoteAddress ?? '';
    if (!this.#gate.isTrusted(address)) return true;
    const client = networkOf(this.#gate.clientOf({ headers, address }));
    if (!this.#places.take(client)) {
      refuse(response);
      return false;
    }
    response.once('close', () => this.#places.leave(client));
    return true;
  }
}

function refuse(response: ServerResponse): void {
  const problem = new RequestProblem('too-many-requests', texts.too_many_at_once);
  response.writeHead(problem.status, {
    'content-type': 'application/problem+json',
    'retry-after': String(retry_after_s),
    // Its body may never come to an end.
    connection: 'close',
  });
  response.end(JSON.stringify(problemDocument(problem, randomUUID())));
}
