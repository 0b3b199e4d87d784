/**
 * Unary gRPC calls in the clear over one HTTP/2 connection, with a deadline and a size limit for each answer.
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
 */
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import type { Socket } from 'node:net';
import { DeviceUnreachable, messageOf } from '../../../src/platform/errors.ts';
import { GatheredBytes } from '../../../src/platform/gathered-bytes.ts';
import { within } from '../../../src/platform/time.ts';
import { texts } from '../texts.ts';

/** What a server answered: a message, or why there is none. */
export type Answer =
  | { readonly status: 0; readonly message: Uint8Array }
  | { readonly status: number; readonly reason: string };

/** Status codes of gRPC that are distinguished here. */
export const grpc_status = { ok: 0, permission_denied: 7, unimplemented: 12 } as const;

export interface Channel {
  /** Its server leaves a request without an answer now and then: what changes nothing is asked again once. */
  readonly isForgetful?: boolean;
  /** One call. Throws `DeviceUnreachable` when there was no whole answer in time. */
  call(path: string, request: Uint8Array): Promise<Answer>;
}

/** The history of a dish is about 60 kB. */
export const message_max_bytes = 1_048_576;
/** Frames of one answer, which have 16 kB as a rule: each costs a callback, so that a million of one byte would take seconds. */
const pieces_max = 4_096;
/** A flag and the length of the message, big endian. */
const frame_header_bytes = 5;

/** A channel over `socket`, which is connected and belongs to the channel from now on; both are closed when `signal` aborts. */
export function openChannel(
  socket: Socket,
  { timeout_ms, signal }: { readonly timeout_ms: number; readonly signal: AbortSignal },
): Channel {
  const session = connect('http://dish', {
    createConnection: () => socket,
    settings: { enablePush: false },
  });
  // Rejects the pending call; between two calls the next one is rejected.
  session.on('error', () => undefined);
  socket.on('error', () => undefined);
  const close = (): void => {
    session.destroy();
    socket.destroy();
  };
  session.once('close', () => {
    signal.removeEventListener('abort', close);
    socket.destroy();
  });
  signal.addEventListener('abort', close, { once: true });
  if (signal.aborted) close();
  return { call: async (path, request) => call({ session, path, request, timeout_ms, signal }) };
}

interface Call {
  readonly session: ClientHttp2Session;
  readonly path: string;
  readonly request: Uint8Array;
  readonly timeout_ms: number;
  readonly signal: AbortSignal;
}

async function call({ session, path, request, timeout_ms, signal }: Call): Promise<Answer> {
  const stream = openStream(session, path, timeout_ms);
  const answering = collect(stream);
  stream.end(frame(request));
  try {
    const answer = await within(timeout_ms, answering, signal);
    if (!answer) throw new DeviceUnreachable(texts.answer_timeout(timeout_ms));
    return answer;
  } finally {
    if (!stream.closed) stream.close(constants.NGHTTP2_CANCEL);
  }
}

function openStream(session: ClientHttp2Session, path: string, timeout_ms: number): ClientHttp2Stream {
  try {
    return session.request({
      [constants.HTTP2_HEADER_METHOD]: constants.HTTP2_METHOD_POST,
      [constants.HTTP2_HEADER_PATH]: path,
      [constants.HTTP2_HEADER_CONTENT_TYPE]: 'application/grpc+proto',
      [constants.HTTP2_HEADER_TE]: 'trailers',
      'grpc-timeout': `${Math.ceil(timeout_ms)}m`,
    });
  } catch (error) {
    // The server has sent GOAWAY since the last call.
    throw new DeviceUnreachable(texts.connection_closed, { cause: error });
  }
}

/** Resolves when the stream has ended with a status, rejects when it ended otherwise. */
async function collect(stream: ClientHttp2Stream): Promise<Answer> {
  const answer = new GatheredBytes(message_max_bytes + frame_header_bytes);
  let head: Headers = {};
  let trailers: Headers = {};
  return new Promise((resolve, reject) => {
    const fail = (why: string): void => reject(new DeviceUnreachable(why));
    stream.on('response', (headers: object) => {
      head = headersOf(headers);
    });
    stream.on('trailers', (headers: object) => {
      trailers = headersOf(headers);
    });
    let pieces = 0;
    stream.on('data', (chunk: Buffer) => {
      pieces += 1;
      if (pieces > pieces_max) fail(texts.answer_in_pieces(pieces_max));
      else if (!answer.add(chunk)) fail(texts.answer_too_large(message_max_bytes));
      else return;
      stream.destroy();
    });
    stream.on('error', (error: Error) => {
      // What arrives is not HTTP/2.
      const isForeign = 'code' in error && error.code === 'ERR_HTTP2_ERROR';
      fail(isForeign ? texts.not_grpc_at_all : texts.connection_failed(messageOf(error)));
    });
    stream.on('close', () => {
      try {
        resolve(answerOf(head, trailers, answer.all()));
      } catch (error) {
        reject(error instanceof Error ? error : new DeviceUnreachable(messageOf(error)));
      }
    });
  });
}

type Headers = Readonly<Record<string, string>>;

function headersOf(headers: object): Headers {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}

function answerOf(head: Headers, trailers: Headers, body: Buffer): Answer {
  const http_status = head[constants.HTTP2_HEADER_STATUS];
  if (http_status === undefined) throw new DeviceUnreachable(texts.closed_before_answer);
  const type = head[constants.HTTP2_HEADER_CONTENT_TYPE] ?? 'nothing';
  if (http_status !== '200' || !type.startsWith('application/grpc')) {
    throw new DeviceUnreachable(texts.not_grpc(http_status, type));
  }
  // A server that has only a status puts it into the first headers.
  const last = 'grpc-status' in trailers ? trailers : head;
  const code = last['grpc-status'] ?? '';
  if (!/^\d{1,3}$/u.test(code)) throw new DeviceUnreachable(texts.no_status);
  const status = Number(code);
  if (status === grpc_status.ok) return { status, message: unframe(body) };
  return { status, reason: reasonOf(last['grpc-message'] ?? '') || `gRPC status ${status}` };
}

const reason_max = 200;

/** `grpc-message` is percent-encoded; what is not stays as it came. */
export function reasonOf(text: string): string {
  const short = text.slice(0, reason_max).replaceAll(/\p{C}/gu, '');
  try {
    return decodeURIComponent(short);
  } catch {
    return short;
  }
}

export function frame(message: Uint8Array): Buffer {
  const header = Buffer.alloc(frame_header_bytes);
  header.writeUInt32BE(message.length, 1);
  return Buffer.concat([header, message]);
}

function unframe(body: Buffer): Uint8Array {
  if (body.length < frame_header_bytes) throw new DeviceUnreachable(texts.no_message);
  if (body.readUInt8(0) !== 0) throw new DeviceUnreachable(texts.compressed);
  const end = frame_header_bytes + body.readUInt32BE(1);
  if (body.length !== end) throw new DeviceUnreachable(texts.length_wrong);
  return body.subarray(frame_header_bytes);
}
