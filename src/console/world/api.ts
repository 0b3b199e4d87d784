/** Sends requests to the service: with the session cookie, and with a header that a form of another site cannot send. */

import { t } from '../words/words.ts';
import { field, parseJson, textIn } from '../json.ts';
import type { JsonValue } from '../types.d.ts';

const answer_ms = 10_000;

/** The service refused; `message` is its own explanation. */
export class Refused extends Error {
  readonly status: number;
  readonly request_id: string;

  constructor(status: number, message: string, request_id: string) {
    super(message);
    this.name = 'Refused';
    this.status = status;
    this.request_id = request_id;
  }
}

/** Sends a request and returns the parsed body; undefined when there is none. Throws `Refused`, and other errors when no answer came. */
export async function ask(
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  path: string,
  {
    body,
    headers = {},
  }: { readonly body?: JsonValue; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<unknown> {
  const response = await fetch(path, {
    method,
    headers: {
      'X-Kit-Page': '1',
      ...(method === 'GET' ? {} : { 'Content-Type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    credentials: 'same-origin',
    cache: 'no-store',
    signal: AbortSignal.timeout(answer_ms),
  });
  const text = await response.text();
  const answer = parseJson(text);
  if (response.ok) return answer;
  throw new Refused(response.status, explain(response.status, answer), textIn(field(answer, 'instance')));
}

/** @param problem RFC 9457 */
function explain(status: number, problem: unknown): string {
  const detail = field(problem, 'detail') ?? field(problem, 'title');
  const errors = field(problem, 'errors');
  const places = Array.isArray(errors)
    ? errors.map(
        (each) =>
          `${textIn(field(each, 'pointer')).replace(/^#\/payload\//u, '')}: ${textIn(field(each, 'detail'))}`,
      )
    : [];
  const sentence = typeof detail === 'string' ? detail : t.trouble.answered(status);
  return places.length === 0 ? sentence : `${sentence} (${places.join('; ')})`;
}

/**
 * @param error that `ask` threw
 * @param otherwise where the service did not answer
 * @returns the explanation of the service, or `otherwise`
 */
export function reasonOf(error: unknown, otherwise: string): string {
  return error instanceof Refused ? error.message : otherwise;
}

/** A random UUID. `crypto.randomUUID` does not exist on plain http. */
export function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
