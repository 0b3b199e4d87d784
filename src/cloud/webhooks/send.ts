/** One attempt to deliver: resolves the name, connects to an address that is allowed, and reads the status. */
import { lookup as resolve, type LookupAddress } from 'node:dns';
import { request as requestHttp, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { systemReason } from '../../platform/errors.ts';
import { limitInterimAnswers } from '../../platform/interim-answers.ts';
import type { AddressPolicy } from './address-policy.ts';
import { texts } from './texts.ts';

/** Of a response, whose body means nothing. */
const response_bytes_max = 64 * 1024;
const header_bytes_max = 16 * 1024;
const retry_after_s_max = 86_400;

export interface Delivery {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface SendParts {
  readonly policy: AddressPolicy;
  readonly timeout_ms: number;
  readonly signal: AbortSignal;
}

export type Attempt =
  | { readonly kind: 'delivered'; readonly status: number }
  | {
      readonly kind: 'failed';
      readonly reason: string;
      /** Undefined: no answer. */
      readonly status?: number | undefined;
      /** `Retry-After`. */
      readonly asked_ms?: number | undefined;
      /** The receiver wants no more deliveries (410). */
      readonly gone?: boolean;
    }
  /** The signal aborted: it is not known whether the receiver has it. */
  | { readonly kind: 'interrupted' };

/** Redirects are not followed: they would lead past the check of the address. */
export async function sendOnce(
  delivery: Delivery,
  { policy, timeout_ms, signal }: SendParts,
): Promise<Attempt> {
  const timeout = AbortSignal.timeout(timeout_ms);
  const fault = policy.faultOf(delivery.url);
  if (fault !== undefined) return { kind: 'failed', reason: fault };
  try {
    const response = await post(delivery, policy, AbortSignal.any([signal, timeout]));
    return outcomeOf(response);
  } catch (error) {
    if (signal.aborted) return { kind: 'interrupted' };
    const reason = timeout.aborted ? texts.no_answer(timeout_ms) : reasonOf(error);
    return { kind: 'failed', reason };
  }
}

interface Answered {
  readonly status: number;
  readonly retry_after: string | undefined;
}

async function post(
  { url, headers, body }: Delivery,
  policy: AddressPolicy,
  signal: AbortSignal,
): Promise<Answered> {
  const options: RequestOptions = {
    method: 'POST',
    agent: false,
    lookup: allowedOnly(policy),
    maxHeaderSize: header_bytes_max,
    signal,
    headers: {
      ...headers,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'user-agent': 'kit-connector',
    },
  };
  const request = url.startsWith('https:') ? requestHttps(url, options) : requestHttp(url, options);
  limitInterimAnswers(request);
  const response = await new Promise<IncomingMessage>((done, reject) => {
    request.once('response', done);
    request.on('error', reject);
    request.end(body);
  });
  await drain(response);
  return { status: response.statusCode ?? 0, retry_after: response.headers['retry-after'] };
}

/** Reads and forgets the body, up to its limit; the status counts, however the body ends. */
async function drain(response: IncomingMessage): Promise<void> {
  let bytes = 0;
  await new Promise<void>((done) => {
    response.once('close', done);
    // It ended early: the status is there.
    response.on('error', () => undefined);
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > response_bytes_max) response.destroy();
    });
  });
}

/** The parser of Node.js names what it expected; the receiver is what someone must look at. */
function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'HPE_HEADER_OVERFLOW') return texts.headers_too_large(header_bytes_max);
  return code.startsWith('HPE_') ? texts.no_http : systemReason(error);
}

function outcomeOf({ status, retry_after }: Answered): Attempt {
  if (status >= 200 && status < 300) return { kind: 'delivered', status };
  const isMoved = status >= 300 && status < 400;
  const reason = isMoved ? texts.redirected(status) : texts.refused(status);
  const asked_s = /^\d{1,9}$/u.test(retry_after ?? '') ? Number(retry_after) : 0;
  return {
    kind: 'failed',
    reason,
    status,
    asked_ms: Math.min(asked_s, retry_after_s_max) * 1_000,
    gone: status === 410,
  };
}

/** The connection is made to one of the addresses that were checked: a name that resolves differently later changes nothing. */
function allowedOnly(policy: AddressPolicy): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, found: LookupAddress[]) => {
      if (error) {
        callback(error, []);
        return;
      }
      const allowed = found.filter(({ address }) => isIP(address) !== 0 && policy.reaches(address));
      const [first] = allowed;
      if (!first) callback(new Error(texts.private_address(hostname)), []);
      else if (options.all === true) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}
