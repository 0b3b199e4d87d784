/** Turns errors and misfits of a request into problem documents (RFC 9457). */
import type { Context } from 'hono';
import { HTTPException } from 'hono/http-exception';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { z } from 'zod';
import { messageOf, StorageBusy, StorageUnavailable } from '../../platform/errors.ts';
import type { Problem } from '../api/resources.ts';
import { fieldFaults, problemDocument, type ProblemKind, RequestProblem } from '../api/problem.ts';
import type { ServiceLog } from '../service-log.ts';
import { type Env, takesPassword } from './context.ts';
import { texts } from '../texts.ts';
import { OpenAPIHono } from '@hono/zod-openapi';

const storage_retry_s = 5;
/** What earth viewers show in the window that asks for a name and a password. */
const password_challenge = 'Basic realm="API key as password", charset="UTF-8"';

export function answerProblem(c: Context<Env>, thrown: unknown, log: ServiceLog): Response {
  const asked = { request_id: c.var.request_id, path: c.req.path };
  const { status, headers, body } = problemAnswer(thrown, asked, log);
  return c.body(body, statusOf(status), headers);
}

interface Asked {
  readonly request_id: string;
  readonly path: string;
}

/** The answer to a request that failed, also to a handshake of a WebSocket. What is no refusal is logged as an internal error. */
export function problemAnswer(thrown: unknown, { request_id, path }: Asked, log: ServiceLog) {
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
    ...(about.status === 401 && { 'WWW-Authenticate': takesPassword(path) ? password_challenge : 'ApiKey' }),
  };
  return { status: about.status, headers, body: JSON.stringify(about) };
}

function asProblem(thrown: unknown): RequestProblem | undefined {
  if (thrown instanceof RequestProblem) return thrown;
  if (thrown instanceof StorageUnavailable) {
    const detail = thrown instanceof StorageBusy ? texts.database_busy : texts.database_silent;
    return new RequestProblem('unavailable', detail, {
      retry_after_s: storage_retry_s,
    });
  }
  if (isCutOff(thrown)) return new RequestProblem('bad-request', texts.body_cut_off);
  if (!(thrown instanceof HTTPException)) return undefined;
  const kind = kinds[thrown.status];
  return kind && new RequestProblem(kind, messageOf(thrown));
}

/** The client hung up before its whole body had come: no fault of the service, and no client is left to answer. */
function isCutOff(thrown: unknown): boolean {
  return (
    thrown instanceof Error && thrown.message === 'aborted' && Reflect.get(thrown, 'code') === 'ECONNRESET'
  );
}

const kinds: Readonly<Record<number, ProblemKind>> = {
  400: 'bad-request',
  404: 'not-found',
  413: 'too-large',
  415: 'unsupported-type',
};

/** Problems are made with the status codes of `problem.ts` and 500. */
function statusOf(status: number): ContentfulStatusCode {
  const known = [
    400, 401, 403, 404, 405, 406, 409, 412, 413, 415, 416, 421, 422, 426, 429, 503, 504,
  ] as const;
  return known.find((each) => each === status) ?? 500;
}

/** Converts a schema mismatch of a request: not found for path parameters, otherwise the faults by field. */
export function refuseMisfit(target: string, error: z.ZodError): RequestProblem {
  if (target === 'param') return new RequestProblem('not-found', texts.no_uuid);
  const errors = fieldFaults(error);
  if (target === 'json') return new RequestProblem('invalid-payload', texts.body_mismatch, { errors });
  const [first] = errors;
  const sentence = first ? `${first.pointer.slice(2)}: ${first.detail}` : '';
  return new RequestProblem('bad-request', texts.invalid_parameters(target, sentence), { errors });
}

/** What does not fit the schemas of a route is a problem like any other. */
export function newRoutes(): OpenAPIHono<Env> {
  return new OpenAPIHono<Env>({
    defaultHook: (result) => {
      if (!result.success) throw refuseMisfit(result.target, result.error);
    },
  });
}
