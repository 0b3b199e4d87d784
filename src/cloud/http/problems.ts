/** Turns errors and misfits of a request into problem documents (RFC 9457). */
import type { Context } from 'hono';
import { HTTPException } from 'hono/http-exception';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { z } from 'zod';
import { messageOf } from '../../platform/errors.ts';
import { fieldFaults, type ProblemKind, RequestProblem } from '../api/problem.ts';
import { problemAnswer } from '../api/problem-answer.ts';
import type { ServiceLog } from '../service-log.ts';
import { type Env, takesPassword } from './context.ts';
import { texts } from '../texts.ts';
import { OpenAPIHono } from '@hono/zod-openapi';

/** What earth viewers show in the window that asks for a name and a password. */
const password_challenge = 'Basic realm="API key as password", charset="UTF-8"';

export function answerProblem(c: Context<Env>, thrown: unknown, log: ServiceLog): Response {
  const kind = thrown instanceof HTTPException ? kinds[thrown.status] : undefined;
  const { path } = c.req;
  const { status, headers, body } = problemAnswer(
    kind ? new RequestProblem(kind, messageOf(thrown)) : thrown,
    {
      request_id: c.var.request_id,
      path,
      challenge: takesPassword(path) ? password_challenge : undefined,
    },
    log,
  );
  return c.body(body, statusOf(status), headers);
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
