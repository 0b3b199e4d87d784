/** One request to the API of a media server on the kit. */
import { type IncomingMessage, request as requestHttp } from 'node:http';
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
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below `api_url`, escaped. */
  readonly path: string;
  readonly body?: object;
  readonly signal: AbortSignal;
}

export interface ApiAnswer {
  readonly status: number;
  /** Undefined when it is no JSON. */
  readonly body: unknown;
}

const answer_deadline_ms = 5_000;
/** The API lists every stream of the server; a kit has few. */
const answer_bytes_max = 1_000_000;

/** Rejects when there is no whole answer in time. Redirects are not followed. */
export async function askApi(access: ApiAccess, request: ApiRequest): Promise<ApiAnswer> {
  const url = new URL(request.path, access.api_url);
  const body = request.body && JSON.stringify(request.body);
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(answer_deadline_ms)]);
  const asked = (url.protocol === 'https:' ? requestHttps : requestHttp)(url, {
    method: request.method,
    agent: false,
    signal,
    headers: {
      ...authorization(access),
      ...(body !== undefined && {
        'content-type': 'application/json',
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
  const response = await answered.promise;
  return { status: response.statusCode ?? 0, body: parsed(await boundedText(response)) };
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
