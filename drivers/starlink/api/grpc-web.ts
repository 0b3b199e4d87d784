/**
 * Unary gRPC-Web calls over HTTP/1.1, which dishes have in place of gRPC since firmware of June 2026.
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md
 */
import { type IncomingMessage, request as httpRequest } from 'node:http';
import type { Socket } from 'node:net';
import { DeviceUnreachable, messageOf } from '../../../src/platform/errors.ts';
import { gather } from '../../../src/platform/gathered-bytes.ts';
import { limitInterimAnswers } from '../../../src/platform/interim-answers.ts';
import { within } from '../../../src/platform/time.ts';
import { texts } from '../texts.ts';
import { type Answer, type Channel, frame, grpc_status, message_max_bytes, reasonOf } from './grpc.ts';

const type = 'application/grpc-web+proto';
const frame_header_bytes = 5;
/** Flag of the frame that holds the trailers. */
const trailers_flag = 0x80;
/** Room for head and trailers beside the message. */
const overhead_max_bytes = 4_096;

interface WebOptions {
  /** Opens a connection. Each call has its own: the server of a dish serves one at a time. Throws `DeviceUnreachable`. */
  readonly connect: () => Promise<Socket>;
  readonly timeout_ms: number;
  readonly signal: AbortSignal;
}

export function openWebChannel({ connect, timeout_ms, signal }: WebOptions): Channel {
  return {
    isForgetful: true,
    async call(path, message) {
      const socket = await connect();
      socket.on('error', () => undefined);
      try {
        const answer = await within(timeout_ms, exchange(socket, path, frame(message)), signal);
        if (!answer) throw new DeviceUnreachable(texts.answer_timeout(timeout_ms));
        return answer;
      } finally {
        socket.destroy();
      }
    },
  };
}

async function exchange(socket: Socket, path: string, body: Buffer): Promise<Answer> {
  const headers = { 'Content-Type': type, Accept: type, 'X-Grpc-Web': '1', 'Content-Length': body.length };
  return new Promise((resolve, reject) => {
    const fail = (why: string): void => reject(new DeviceUnreachable(why));
    const options = { method: 'POST', host: 'dish', path, headers, createConnection: () => socket };
    const request = httpRequest(options, (response) => {
      collect(response).then(resolve, reject);
    });
    limitInterimAnswers(request);
    request.on('error', (error) => fail(texts.connection_failed(messageOf(error))));
    request.once('close', () => fail(texts.closed_before_answer));
    request.end(body);
  });
}

async function collect(response: IncomingMessage): Promise<Answer> {
  const answer = await gather(response, message_max_bytes + overhead_max_bytes).catch((error: unknown) => {
    throw new DeviceUnreachable(texts.connection_failed(messageOf(error)), { cause: error });
  });
  if (!answer) throw new DeviceUnreachable(texts.answer_too_large(message_max_bytes));
  return answerOf(response, answer);
}

function answerOf({ statusCode = 0, headers }: IncomingMessage, body: Buffer): Answer {
  const shown = headers['content-type'] ?? 'nothing';
  if (statusCode !== 200 || !shown.startsWith('application/grpc-web')) {
    throw new DeviceUnreachable(texts.not_grpc(String(statusCode), shown));
  }
  const { message, trailers } = framesOf(body);
  const field = (name: string): string | undefined => fieldOf(trailers, name) ?? headers[name]?.toString();
  const code = field('grpc-status') ?? '';
  if (!/^\d{1,3}$/u.test(code)) throw new DeviceUnreachable(texts.no_status);
  const status = Number(code);
  if (status !== grpc_status.ok) {
    return { status, reason: reasonOf(field('grpc-message') ?? '') || `gRPC status ${status}` };
  }
  if (!message) throw new DeviceUnreachable(texts.no_message);
  return { status: grpc_status.ok, message };
}

/** The value of a trailer; they look like the headers of HTTP. */
function fieldOf(trailers: string, name: string): string | undefined {
  for (const line of trailers.split('\n')) {
    const [key = '', ...value] = line.split(':');
    if (key.toLowerCase() === name) return value.join(':').trim();
  }
  return undefined;
}

/** The first message of an answer, and its trailers. */
function framesOf(body: Buffer): { readonly message: Buffer | undefined; readonly trailers: string } {
  let message: Buffer | undefined;
  let trailers = '';
  for (let at = 0; at < body.length;) {
    if (body.length < at + frame_header_bytes) throw new DeviceUnreachable(texts.length_wrong);
    const flag = body.readUInt8(at);
    const start = at + frame_header_bytes;
    const end = start + body.readUInt32BE(at + 1);
    if (end > body.length) throw new DeviceUnreachable(texts.length_wrong);
    const isTrailers = flag === trailers_flag;
    if (isTrailers && end - start > overhead_max_bytes) throw new DeviceUnreachable(texts.trailers_too_large);
    if (isTrailers) trailers = body.toString('latin1', start, end);
    else if (flag === 0) message ??= body.subarray(start, end);
    else throw new DeviceUnreachable(texts.compressed);
    at = end;
  }
  return { message, trailers };
}
