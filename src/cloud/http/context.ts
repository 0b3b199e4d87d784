/** The context of a request in the server, and the parameters of the paths. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createRoute, type RouteConfig, z } from '@hono/zod-openapi';
import { taskStatus } from '../../contract/tasks.ts';
import type { Principal } from '../principal.ts';
import { example_ids, examples, problemExample } from '../api/examples.ts';
import { RequestProblem } from '../api/problem.ts';
import { problem } from '../api/resources.ts';
import { readCursor } from '../task-pages.ts';
import { texts } from '../texts.ts';

export interface Env {
  /** Given by the server of node. */
  Bindings: { readonly incoming: IncomingMessage; readonly outgoing?: ServerResponse };
  Variables: {
    /** Appears in the log and in problems. */
    request_id: string;
    principal: Principal;
    /** Why the answer ends before its end. */
    cut_by?: string;
    /** The body is a JSON Merge Patch (RFC 7396). */
    merges?: boolean;
  };
}

/** Whether the key may come as the password of HTTP Basic: earth viewers send no header of their own. The path changes nothing. */
export function takesPassword(path: string): boolean {
  return /^\/api\/assets\.kml\/?$/u.test(path);
}

/** Ids are stored in lower case. */
const uuid = z.uuid().toLowerCase();

/** A parameter of the path with its description and example. */
const param = <S extends z.ZodType>(name: keyof typeof example_ids, schema: S, description: string): S =>
  schema.openapi({ param: { name, in: 'path', description, example: example_ids[name] } });

export const kitParams = z.object({ kit_id: param('kit_id', uuid, 'id of the kit') });
export const linkParams = kitParams.extend({
  link_name: param(
    'link_name',
    z.string().min(1).max(64),
    'name of the interface, or type of the link (the one in use first); case does not matter',
  ),
});
export const assetParams = kitParams.extend({
  asset_id: param('asset_id', uuid, 'id of the asset'),
});
/** Loose: the interface has none, and clients may send any. */
export const assetQuery = z.looseObject({
  degraded: z
    .enum(['true', 'false'])
    .optional()
    .transform((text) => (text === undefined ? undefined : text === 'true'))
    .openapi({
      type: 'boolean',
      param: {
        name: 'degraded',
        in: 'query',
        required: false,
        description:
          'only assets that are online and fail to deliver something (`health`); false: only the others',
      },
    }),
});
export const commandParams = assetParams.extend({
  command_name: param('command_name', z.string().min(1).max(128), 'as List Commands names it'),
});
export const taskParams = kitParams.extend({ task_id: param('task_id', uuid, 'id of the task') });

export const fileParams = kitParams.extend({ file_id: param('file_id', uuid, 'id of the file') });
export const alarmParams = kitParams.extend({ alarm_id: param('alarm_id', uuid, 'id of the alarm') });
export const keyParams = z.object({
  key_id: param('key_id', z.string().toLowerCase().max(64), 'id of the key'),
});
export const webhookParams = z.object({ webhook_id: param('webhook_id', uuid, 'id of the webhook') });

export const tasks_listed_max = 200;
const cursor_chars_max = 128;
export const taskQuery = z.object({
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(tasks_listed_max)
    .default(50)
    .openapi({ param: { name: 'limit', in: 'query', description: 'tasks in one response', example: 20 } }),
  status: taskStatus
    .optional()
    .openapi({ param: { name: 'status', in: 'query', description: 'only tasks with this status' } }),
  cursor: z
    .string()
    .max(cursor_chars_max)
    .optional()
    .transform((text, context) => {
      const place = text === undefined ? undefined : readCursor(text);
      if (text !== undefined && !place) context.addIssue('send the `next_cursor` of the page before');
      return place;
    })
    .openapi({
      type: 'string',
      param: {
        name: 'cursor',
        in: 'query',
        required: false,
        description: '`next_cursor` of the page before',
      },
    }),
});

/** Documented response headers; every one is always present where it is named. */
export const responseHeaders = {
  location: z.object({ Location: z.string().describe('path of the created resource') }),
  retryAfter: z.object({ 'Retry-After': z.string().describe('seconds after which a retry makes sense') }),
  challenge: z.object({ 'WWW-Authenticate': z.string().describe('always `ApiKey`') }),
  password: z.object({ 'WWW-Authenticate': z.string().describe('always `Basic`, with a realm') }),
} as const;

export const asProblem = (status: number, description: string, headers?: z.ZodObject) => ({
  description,
  ...(headers && { headers }),
  content: {
    'application/problem+json': { schema: problem, example: problemExample(status, description) },
  },
});
const { retryAfter, challenge } = responseHeaders;

/** Problem responses of any request. */
export const anyProblem = {
  400: asProblem(400, 'invalid query'),
  401: asProblem(401, 'no API key, or not a valid one', challenge),
  403: asProblem(403, 'the key lacks the scope, or another page sent the cookie'),
  404: asProblem(404, 'no such kit, asset, command, task or link, or not for this key'),
  421: asProblem(421, 'the host name is not served here'),
  429: asProblem(429, 'too many requests; see Retry-After', retryAfter),
  503: asProblem(503, 'the service cannot answer now; see Retry-After', retryAfter),
} as const;

/** Responses of reads: those of any request, and 304. */
export const readProblem = {
  304: { description: 'the response is still the one whose ETag `If-None-Match` named' },
  ...anyProblem,
} as const;

/** Additional problem responses of requests that change something. */
export const changeProblem = {
  ...anyProblem,
  400: asProblem(400, 'the body is not JSON'),
  409: asProblem(409, 'the current state does not allow it'),
  412: asProblem(412, '`If-Match` names another state than the present one'),
  413: asProblem(413, 'the body is too large'),
  415: asProblem(415, 'the Content-Type is not JSON, or the body has a Content-Encoding'),
  422: asProblem(422, 'the body does not match its schema; `errors` names each place'),
} as const;

/** A response with a JSON body, and the example of its schema. */
export const okJson = <S extends z.ZodType>(schema: S, description: string) => ({
  description,
  content: { 'application/json': { schema, example: examples.get(schema) } },
});

/** The response with further media types, each with an example. */
export function withForms<R extends { readonly content: object }>(
  response: R,
  forms: Readonly<Record<string, string>>,
) {
  const textTypes = Object.fromEntries(
    Object.entries(forms).map(([type, example]) => [type, { schema: z.string(), example }]),
  );
  return { ...response, content: { ...response.content, ...textTypes } };
}

/** As `okJson`, for a created resource: its path is in the header `Location`. */
export const createdJson = <S extends z.ZodType>(schema: S, description: string) => ({
  ...okJson(schema, description),
  headers: responseHeaders.location,
});

export function jsonBody<S extends z.ZodType>(schema: S) {
  return {
    required: true,
    content: { 'application/json': { schema, example: examples.get(schema) } },
  } as const;
}

/** A body that may be left out. */
export function optionalBody<S extends z.ZodType>(schema: S) {
  return { ...jsonBody(schema), required: false } as const;
}

/** Returns the part, or throws `not-found` when the kit has never reported it. */
export function reported<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new RequestProblem('not-found', texts.not_reported(what));
  return value;
}

type About = Omit<RouteConfig, 'method' | 'path' | 'tags'>;

/** Declares routes that the document shows under this tag. */
export function routesUnder(tag: string) {
  return <M extends RouteConfig['method'], P extends string, R extends About>(method: M, path: P, about: R) =>
    createRoute({ method, path, tags: [tag], ...about });
}
