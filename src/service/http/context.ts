/** The context of a request in the server, and the parameters of the paths. */
import type { IncomingMessage } from 'node:http';
import { z } from '@hono/zod-openapi';
import { taskStatus } from '../../contract/tasks.ts';
import type { Principal } from '../access/principal.ts';
import { RequestProblem } from '../api/problem.ts';
import { problem } from '../api/resources.ts';

export interface Env {
  /** Given by the server of node. */
  Bindings: { readonly incoming: IncomingMessage };
  Variables: {
    /** Appears in the log and in problems. */
    request_id: string;
    principal: Principal;
  };
}

const id = (name: string) => z.uuid().openapi({ param: { name, in: 'path' } });

export const kitParams = z.object({ kit_id: id('kit_id') });
export const linkParams = kitParams.extend({ link_name: z.string().min(1).max(64) });
export const assetParams = kitParams.extend({ asset_id: id('asset_id') });
export const commandParams = assetParams.extend({ command_name: z.string().min(1).max(128) });
export const taskParams = kitParams.extend({ task_id: id('task_id') });

export const tasks_listed_max = 200;
export const taskQuery = z.object({
  limit: z.coerce.number().int().min(1).max(tasks_listed_max).default(50),
  status: taskStatus.optional(),
});

const asProblem = (description: string) => ({
  description,
  content: { 'application/problem+json': { schema: problem } },
});

/** Problem responses of any request. */
export const anyProblem = {
  400: asProblem('invalid query'),
  401: asProblem('no API key, or not a valid one'),
  403: asProblem('the key lacks the scope, or another page sent the cookie'),
  404: asProblem('no such kit, asset, command, task or link, or not for this key'),
  421: asProblem('the host name is not served here'),
  429: asProblem('too many requests; see Retry-After'),
  503: asProblem('the service cannot answer now; see Retry-After'),
} as const;

/** Additional problem responses of requests that change something. */
export const changeProblem = {
  ...anyProblem,
  400: asProblem('the body is not JSON'),
  409: asProblem('the current state does not allow it'),
  413: asProblem('the body is too large'),
  415: asProblem('the Content-Type is not JSON'),
  422: asProblem('the body does not match its schema; `errors` names each place'),
} as const;

export const okJson = <S extends z.ZodType>(schema: S, description: string) => ({
  description,
  content: { 'application/json': { schema } },
});

export function jsonBody<S extends z.ZodType>(schema: S) {
  return { required: true, content: { 'application/json': { schema } } } as const;
}

/** Returns the part, or throws `not-found` when the kit has never reported it. */
export function reported<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new RequestProblem('not-found', `the kit has not reported ${what} yet`);
  return value;
}
