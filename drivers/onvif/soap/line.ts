/** Request queue of one camera: each call has a deadline; its reply is read here or, when large, in a thread. */
import { connectionFault } from '../../../src/device/connection-fault.ts';
import { messageOf } from '../../../src/errors.ts';
import { deadline } from '../../../src/platform/time.ts';
import { Destination } from './destination.ts';
import { readEnvelope } from './envelope.ts';
import { GuardedCam, type Limit, type ReadReply } from './guarded-cam.ts';
import { type LargeReplies, read_max_ms } from './large-replies.ts';
import { type Connection, failure, type FailureKind, type Failure } from './soap-call.ts';
import { call_deadline_ms, type Soap } from './soap.ts';
import { CertificateRefused, ReplyRefused } from './transport.ts';
import { texts } from '../texts.ts';

/**
 * Replies up to this size are read in this thread. That takes at most 10 ms, for any content, and 50 ms if the library had
 * another quadratic expression than the known one; almost all replies are far below.
 */
export const small_chars_max = 32_768;
/** Calls of one camera that wait for an answer. */
const calls_max = 32;

/** Opens the line without state of an earlier login, clock or nonce. It closes when `signal` aborts. */
export function openLine(
  connection: Connection,
  large: Pick<LargeReplies, 'read'>,
  signal: AbortSignal,
): Soap {
  const calls = new Set<AbortController>();
  let isClosed = signal.aborted;
  const read = readerWith(large);
  const destination = new Destination(connection.host, connection.name);
  const cam = new GuardedCam(connection, destination, read);

  /** Each answer of the camera has `ms`: one operation may need a reading of its clock, and a challenge. */
  const limited = async <T>(ms: number, work: (limit: Limit) => Promise<T>): Promise<T | Failure> => {
    if (isClosed) return failure('interrupted', texts.connection_closed);
    if (calls.size >= calls_max) return failure('interrupted', texts.queue_full);
    const call = new AbortController();
    const { cancel, ...limit } = limitOf(call, ms);
    calls.add(call);
    try {
      return await work(limit);
    } catch (error) {
      if (isClosed) return failure('interrupted', texts.connection_closed);
      if (call.signal.aborted) return failure('deadline', texts.answer_late(ms / 1_000));
      return failure(kindOf(error), reasonOf(error));
    } finally {
      cancel();
      calls.delete(call);
    }
  };
  const close = (): void => {
    isClosed = true;
    signal.removeEventListener('abort', close);
    for (const call of calls) call.abort();
  };
  signal.addEventListener('abort', close, { once: true });

  let files: GuardedCam | undefined;
  const soap: Soap = {
    get connection() {
      return { ...connection, peer_address: destination.peer };
    },
    login: 'ws_security',
    call: async ({ deadline_ms = call_deadline_ms, ...operation }) => {
      const request = { ...operation, login: soap.login };
      return limited(deadline_ms, async (limit) => cam.perform(request, limit));
    },
    fetch: async (url, { deadline_ms, bytes_max }) =>
      limited(deadline_ms, async (limit) => {
        // A separate login: the web server of a camera may ask for another one than its services.
        files ??= new GuardedCam(connection, destination, read);
        return files.fetch(url, bytes_max, limit);
      }),
    parse: async (xml) => limited(call_deadline_ms, async (limit) => read(xml, limit)),
    close,
  };
  return soap;
}

/** Of a call whose answers have `ms` each. */
function limitOf(call: AbortController, ms: number): Limit & { readonly cancel: () => void } {
  let cancel = deadline(ms, () => call.abort());
  const allow = (more_ms: number): void => {
    cancel();
    cancel = deadline(more_ms, () => call.abort());
  };
  return {
    signal: call.signal,
    onAnswer: () => allow(ms),
    onQueued: () => allow(read_max_ms),
    cancel: () => cancel(),
  };
}

function readerWith(large: Pick<LargeReplies, 'read'>): ReadReply {
  return async (xml, { signal, onAnswer, onQueued }) => {
    if (xml.length <= small_chars_max) return readEnvelope(xml);
    onQueued();
    const reading = await large.read(xml, signal);
    onAnswer();
    return reading;
  };
}

function kindOf(error: unknown): FailureKind {
  if (error instanceof CertificateRefused) return 'certificate';
  return error instanceof ReplyRefused ? 'malformed' : 'unreachable';
}

function reasonOf(error: unknown): string {
  const isOwn = error instanceof CertificateRefused || error instanceof ReplyRefused;
  return (isOwn ? undefined : connectionFault(error, texts.refused_remedy)) ?? messageOf(error);
}
