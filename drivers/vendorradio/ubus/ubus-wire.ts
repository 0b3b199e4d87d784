/** Encodes calls and decodes answers of ubus over JSON-RPC, as in uhttpd's ubus.c and rpcd. */
import { z } from 'zod';
import { answer_limits, readJson } from '../../../src/contract/bounded-json.ts';
import { DeviceUnreachable } from '../../../src/platform/errors.ts';
import { texts } from '../texts.ts';

export interface Call {
  readonly object: string;
  readonly method: string;
  readonly args?: Readonly<Record<string, unknown>>;
}

/**
 * Outcome of one call. `status`: the refusal of the object, one of UBUS_STATUS. `denied`: the session has ended, or it
 * lacks the right, or the method does not exist; the reply does not distinguish them. `absent`: the object does not
 * exist, also while rpcd restarts. `failed`: the outcome is unknown.
 */
export type Answer =
  | { readonly kind: 'ok'; readonly body: unknown }
  | { readonly kind: 'status'; readonly code: number }
  | { readonly kind: 'denied' | 'absent' }
  | { readonly kind: 'failed'; readonly sentence: string };

/** UBUS_STATUS values that the driver distinguishes. */
export const ubus_status = {
  invalid_command: 1,
  invalid_argument: 2,
  method_not_found: 3,
  not_found: 4,
  permission_denied: 6,
  not_supported: 8,
} as const;

const status_words: Readonly<Record<number, string>> = {
  1: texts.status_command,
  2: texts.status_argument,
  3: texts.status_method,
  4: 'not found',
  5: 'no data',
  6: 'no permission',
  7: texts.status_timeout,
  8: 'not supported',
  9: texts.status_unknown,
  10: texts.status_connection,
  11: texts.status_memory,
  12: texts.status_parse,
  13: texts.status_system,
};

const parse_error = -32_700;

export const no_session = '0'.repeat(32);

export function requestText(calls: readonly Call[], sid: string, first_id: number): string {
  const requests = calls.map(({ object, method, args = {} }, index) => ({
    jsonrpc: '2.0',
    id: first_id + index,
    method: 'call',
    params: [sid, object, method, args],
  }));
  // A single call is sent without a batch: some forks do not support batches.
  return JSON.stringify(requests.length === 1 ? requests[0] : requests);
}

const replySchema = z.looseObject({
  result: z.unknown().optional(),
  error: z.looseObject({ code: z.number(), message: z.string().optional() }).optional(),
});

/** One answer for each call, in order. Throws DeviceUnreachable for anything but JSON-RPC. */
export function answersIn(text: string, count: number): readonly Answer[] {
  const json = parsed(text);
  const replies = Array.isArray(json) ? json : [json];
  if (replies.length !== count) {
    throw new DeviceUnreachable(texts.answers_missing(replies.length, count));
  }
  return replies.map(answerIn);
}

/** Whether a batch was refused as a whole, so that none of its calls was executed: some forks do not support batches. */
export function isBatchRefused(text: string): boolean {
  return replySchema.safeParse(parsed(text)).data?.error?.code === parse_error;
}

/** The result of a `list`, which needs no session. */
export function listIn(text: string): readonly string[] {
  const reply = replySchema.safeParse(parsed(text));
  return z.array(z.string()).catch([]).parse(reply.data?.result);
}

function parsed(text: string): unknown {
  try {
    return readJson(text, answer_limits);
  } catch (error) {
    throw new DeviceUnreachable(texts.not_json, {
      cause: error,
    });
  }
}

function answerIn(reply: unknown): Answer {
  const read = replySchema.safeParse(reply);
  if (!read.success) return { kind: 'failed', sentence: texts.no_json_rpc };
  const { result, error } = read.data;
  if (error) return errorAnswer(error.code, error.message ?? '');
  const [code, body] = z.array(z.unknown()).catch([]).parse(result);
  if (code === 0) return { kind: 'ok', body };
  if (typeof code === 'number') return { kind: 'status', code };
  return { kind: 'failed', sentence: texts.no_status };
}

function errorAnswer(code: number, message: string): Answer {
  // -32001 is in uhttpd's table but never sent; it would mean the same.
  if (code === -32_002 || code === -32_001) return { kind: 'denied' };
  if (code === -32_000) return { kind: 'absent' };
  if (code === -32_003) return { kind: 'failed', sentence: texts.web_server_timeout };
  return { kind: 'failed', sentence: texts.error_code(code, message).trim() };
}

export function answerWords(answer: Answer): string {
  if (answer.kind === 'status') return status_words[answer.code] ?? `status ${answer.code}`;
  if (answer.kind === 'failed') return answer.sentence;
  return { ok: 'success', ...no_answer_words }[answer.kind];
}

const no_answer_words = {
  denied: texts.no_right,
  absent: texts.no_object,
} as const;
