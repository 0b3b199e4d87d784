/** One request to the API of a media server on the kit. */
import { answer_limits, readJson } from '../contract/bounded-json.ts';
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

/** Rejects when there is no whole answer in time. */
export async function askApi(access: ApiAccess, request: ApiRequest): Promise<ApiAnswer> {
  const { method, path, body, signal } = request;
  const headers = new Headers(authorization(access));
  if (body) headers.set('content-type', 'application/json');
  const response = await fetch(new URL(path, access.api_url), {
    method,
    headers,
    ...(body ? { body: JSON.stringify(body) } : {}),
    redirect: 'error',
    signal: AbortSignal.any([signal, AbortSignal.timeout(answer_deadline_ms)]),
  });
  return { status: response.status, body: parsed(await boundedText(response)) };
}

function authorization({ username, password }: ApiAccess): Record<string, string> {
  if (username === undefined) return {};
  const token = Buffer.from(`${username}:${password ?? ''}`).toString('base64');
  return { authorization: `Basic ${token}` };
}

async function boundedText(response: Response): Promise<string> {
  const body: AsyncIterable<Uint8Array> | null = response.body;
  if (!body) return '';
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > answer_bytes_max) throw new Error(texts.answer_too_large(answer_bytes_max));
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parsed(text: string): unknown {
  try {
    return readJson(text, answer_limits);
  } catch {
    return undefined;
  }
}
