/** HTTP for people and tools of this machine: a few routes, texts of a bounded size. A framework would cost the daemon 8 MB. */
import type {
  IncomingHttpHeaders,
  IncomingMessage,
  OutgoingHttpHeaders,
  RequestListener,
  ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import { messageOf } from '../../platform/errors.ts';
import { gather } from '../../platform/gathered-bytes.ts';

export interface ExchangeRequest {
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** What `:id` at the end of the route stands for. */
  readonly id: string;
  /** Rejects with `NotAnswered` when it is larger than a megabyte. */
  readonly body: () => Promise<string>;
  readonly socket: Socket;
}

export interface Answer {
  /** 200 when left out. */
  readonly status?: number;
  readonly content_type: string;
  /** Others than `content-type`. */
  readonly headers?: OutgoingHttpHeaders;
  /** The text, or what writes it piece by piece and ends the response itself. */
  readonly content: string | ((response: ServerResponse) => void);
}

export type Route = (asked: ExchangeRequest) => Answer | Promise<Answer>;

/** By method and path; only the last part of a path can be `:id`. */
export type Routes = Readonly<Record<`${'GET' | 'POST'} /${string}`, Route>>;

/** A request that gets another status than 200, and the sentence that goes with it. */
export class NotAnswered extends Error {
  override readonly name = 'NotAnswered';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const body_bytes_max = 1_000_000;

/** Answers requests by `routes`; what they throw, and what none of them knows, by `refuse`. */
export function answerBy(routes: Routes, refuse: (error: unknown) => Answer): RequestListener {
  const known = new Map(Object.entries(routes));
  return (request, response) => {
    // A connection that breaks is the asker's affair.
    request.on('error', () => response.destroy());
    response.on('error', () => response.destroy());
    void answer(known, request)
      .catch(refuse)
      .then((found) => send(response, found));
  };
}

async function answer(routes: ReadonlyMap<string, Route>, request: IncomingMessage): Promise<Answer> {
  const { method = '', url = '' } = request;
  const [path = '', query = ''] = url.split('?', 2);
  const parent = path.slice(0, path.lastIndexOf('/'));
  const route = routes.get(`${method} ${path}`) ?? routes.get(`${method} ${parent}/:id`);
  if (!route) throw new NotAnswered(404, `there is no ${method} ${path}`);
  return route({
    query: new URLSearchParams(query),
    headers: request.headers,
    id: decoded(path.slice(parent.length + 1)),
    body: async () => readBody(request),
    socket: request.socket,
  });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    throw new NotAnswered(400, `the address cannot be read: ${messageOf(error)}`);
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const body = await gather(request, body_bytes_max);
  if (!body) throw new NotAnswered(413, `a body has at most ${body_bytes_max} bytes`);
  return body.toString('utf8');
}

function send(response: ServerResponse, { status = 200, content_type, headers, content }: Answer): void {
  response.writeHead(status, { 'content-type': content_type, ...headers });
  if (typeof content === 'string') response.end(content);
  else content(response);
}

export function json(value: unknown, status = 200): Answer {
  return { status, content_type: 'application/json', content: JSON.stringify(value) };
}

export function text(content: string, status = 200): Answer {
  return { status, content_type: 'text/plain; charset=utf-8', content };
}
