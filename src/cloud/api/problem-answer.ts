/** The answer to a request that failed, also to a handshake of a WebSocket. */
import { StorageBusy, StorageUnavailable } from '../../platform/errors.ts';
import type { ServiceLog } from '../service-log.ts';
import { texts } from '../texts.ts';
import { problemDocument, RequestProblem } from './problem.ts';
import type { Problem } from './resources.ts';

const storage_retry_s = 5;

export interface Asked {
  /** Appears in the log and in the answer. */
  readonly request_id: string;
  readonly path: string;
  /** Of 401; left out: that of keys. */
  readonly challenge?: string | undefined;
}

/** What is no refusal is logged as an internal error. */
export function problemAnswer(
  thrown: unknown,
  { request_id, path, challenge = 'ApiKey' }: Asked,
  log: ServiceLog,
) {
  const found = asProblem(thrown);
  if (!found) log.error({ err: thrown, request: request_id, path }, texts.log_internal_error);
  const about: Problem = found
    ? problemDocument(found, request_id)
    : { status: 500, type: '/problems/internal', title: 'Internal error', instance: request_id };
  const { retry_after_s, allow, codings, size } = found?.more ?? {};
  const headers: Record<string, string> = {
    'Content-Type': 'application/problem+json',
    ...(retry_after_s !== undefined && { 'Retry-After': String(retry_after_s) }),
    ...(allow && { Allow: allow.join(', ') }),
    ...(codings !== undefined && { 'Accept-Encoding': codings }),
    ...(size !== undefined && { 'Content-Range': `bytes */${size}` }),
    ...(about.status === 426 && { Upgrade: 'websocket' }),
    ...(about.status === 401 && { 'WWW-Authenticate': challenge }),
  };
  return { status: about.status, headers, body: JSON.stringify(about) };
}

function asProblem(thrown: unknown): RequestProblem | undefined {
  if (thrown instanceof RequestProblem) return thrown;
  if (thrown instanceof StorageUnavailable) {
    const detail = thrown instanceof StorageBusy ? texts.database_busy : texts.database_silent;
    return new RequestProblem('unavailable', detail, { retry_after_s: storage_retry_s });
  }
  return isCutOff(thrown) ? new RequestProblem('bad-request', texts.body_cut_off) : undefined;
}

/** The client hung up before its whole body had come: no fault of the service, and no client is left to answer. */
function isCutOff(thrown: unknown): boolean {
  return (
    thrown instanceof Error && thrown.message === 'aborted' && Reflect.get(thrown, 'code') === 'ECONNRESET'
  );
}
