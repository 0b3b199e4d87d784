/** One request to a media server on the kit, to its API or with the offer of a viewer. */
import { type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { answer_limits, readJson } from '../../contract/bounded-json.ts';
import { gather } from '../../platform/gathered-bytes.ts';
import { limitInterimAnswers } from '../../platform/interim-answers.ts';
import { texts } from './texts.ts';

export interface ApiAccess {
  readonly api_url: string;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below `api_url`, escaped; or a whole address. */
  readonly path: string;
  /** A text is SDP. */
  readonly body?: object | string;
  readonly signal: AbortSignal;
  /** Left out: 5 s. */
  readonly deadline_ms?: number;
}

export interface ApiAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** Undefined when it is no JSON. */
  readonly body: unknown;
}

const answer_deadline_ms = 5_000;
/** The API lists every stream of the server; a kit has few. */
const answer_bytes_max = 1_000_000;

/** Rejects when there is no whole answer in time. Redirects are not followed. */
export async function askApi(access: ApiAccess, request: ApiRequest): Promise<ApiAnswer> {
  const response = await openApi(access, request);
  const text = await boundedText(response);
  return { status: response.statusCode ?? 0, headers: response.headers, text, body: parsed(text) };
}

/** As `askApi`, before the body: that is the caller's, and fails when it is not whole in time. */
export async function openApi(access: ApiAccess, request: ApiRequest): Promise<IncomingMessage> {
  const url = new URL(request.path, access.api_url);
  const isSdp = typeof request.body === 'string';
  const body = typeof request.body === 'object' ? JSON.stringify(request.body) : request.body;
  const timeout = AbortSignal.timeout(request.deadline_ms ?? answer_deadline_ms);
  const signal = AbortSignal.any([request.signal, timeout]);
  const asked = (url.protocol === 'https:' ? requestHttps : requestHttp)(url, {
    method: request.method,
    agent: false,
    signal,
    headers: {
      ...authorization(access),
      ...(body !== undefined && {
        'content-type': isSdp ? 'application/sdp' : 'application/json',
        'content-length': Buffer.byteLength(body),
      }),
    },
  });
  limitInterimAnswers(asked);
  const answered = Promise.withResolvers<IncomingMessage>();
  // Stays to the end: another error may follow after the promise is settled.
  asked.on('error', answered.reject);
  asked.once('response', answered.resolve);
  asked.end(body);
  return answered.promise;
}

function authorization({ username, password }: ApiAccess): Record<string, string> {
  if (username === undefined) return {};
  const token = Buffer.from(`${username}:${password ?? ''}`).toString('base64');
  return { authorization: `Basic ${token}` };
}

async function boundedText(response: IncomingMessage): Promise<string> {
  const answer = await gather(response, answer_bytes_max);
  if (!answer) throw new Error(texts.answer_too_large(answer_bytes_max));
  return answer.toString('utf8');
}

function parsed(text: string): unknown {
  try {
    return readJson(text, answer_limits);
  } catch {
    return undefined;
  }
}
