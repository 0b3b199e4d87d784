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
  const found = asProblem(thrown);
  if (!found) {
    const request = c.var.request_id;
    log.error({ err: thrown, request, path: c.req.path }, texts.log_internal_error);
    const about = { status: 500, type: '/problems/internal', title: 'Internal error', instance: request };
    return document(c, about);
  }
  const { status, more } = found;
  if (more.retry_after_s !== undefined) c.header('Retry-After', String(more.retry_after_s));
  if (more.allow) c.header('Allow', more.allow.join(', '));
  if (more.codings !== undefined) c.header('Accept-Encoding', more.codings);
  if (more.size !== undefined) c.header('Content-Range', `bytes */${more.size}`);
  if (status === 426) c.header('Upgrade', 'websocket');
  if (status === 401) c.header('WWW-Authenticate', takesPassword(c.req.path) ? password_challenge : 'ApiKey');
  return document(c, problemDocument(found, c.var.request_id));
}

function document(c: Context<Env>, body: Problem): Response {
  return c.body(JSON.stringify(body), statusOf(body.status), { 'content-type': 'application/problem+json' });
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
