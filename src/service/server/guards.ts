/** What stands before every request: who asks, how often, by which host name, and with how large a body. */
import { randomUUID } from 'node:crypto';
import type { Context, MiddlewareHandler } from 'hono';
import type { Principal } from '../principal.ts';
import { RequestProblem } from '../problem.ts';
import type { Env } from './context.ts';
import { RateLimit } from './rate-limit.ts';

export const body_bytes_max = 64 * 1024;

const reads = { per_s: 20, burst: 40 } as const;
const changes = { per_s: 10, burst: 20 } as const;
const wrong_keys = { per_s: 5 / 60, burst: 5 } as const;

export interface GuardOptions {
  /** Who asks, by header or cookie. Throws `RequestProblem`. */
  readonly identify: (c: Context<Env>) => Promise<Principal>;
  /** Host names and addresses that are served; undefined: any. Against DNS rebinding. */
  readonly hosts: readonly string[] | undefined;
  /** WebRTC servers that the page may ask for video. */
  readonly media_origins: readonly string[];
}

/** Paths below `/api` that need no key. */
const open_paths: ReadonlySet<string> = new Set(['/api/session', '/openapi.json']);

export function requestId(): MiddlewareHandler<Env> {
  return async (c, next) => {
    c.set('request_id', randomUUID());
    await next();
  };
}

/** Headers for the page and against those who would embed or sniff it. */
export function securityHeaders({
  media_origins,
}: Pick<GuardOptions, 'media_origins'>): MiddlewareHandler<Env> {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    `connect-src 'self' ${media_origins.join(' ')}`.trim(),
    "media-src 'self' blob:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join('; ');
  return async (c, next) => {
    await next();
    c.header('Content-Security-Policy', policy);
    c.header('X-Content-Type-Options', 'nosniff');
    c.header('Referrer-Policy', 'no-referrer');
    c.header('Cross-Origin-Opener-Policy', 'same-origin');
    c.header('Cross-Origin-Resource-Policy', 'same-origin');
    if (c.req.path.startsWith('/api')) c.header('Cache-Control', 'no-store');
  };
}

/** A page of another site that made its name point here may not read what is served here. */
export function hostGuard({ hosts }: Pick<GuardOptions, 'hosts'>): MiddlewareHandler<Env> {
  return async (c, next) => {
    const name = new URL(c.req.url).hostname.replace(/^\[|\]$/gu, '').toLowerCase();
    if (hosts && !hosts.includes(name)) {
      throw new RequestProblem('misdirected-request', `"${name}" is not served here; see service.hosts`);
    }
    await next();
  };
}

/** Bounds the body also where the client does not say how long it is. Only POST has a body here. */
export function limitBody(): MiddlewareHandler<Env> {
  return async (c, next) => {
    const length = c.req.header('content-length');
    if (length !== undefined && Number(length) > body_bytes_max) throw tooLarge();
    if (c.req.method === 'POST' && length === undefined && c.req.raw.body) {
      const { url, headers } = c.req.raw;
      const body = await readBounded(c.req.raw.body);
      c.req.raw = new Request(url, { method: 'POST', headers, body });
    }
    await next();
  };
}

async function readBounded(stream: AsyncIterable<Uint8Array>): Promise<Buffer<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
    if (bytes > body_bytes_max) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function tooLarge(): RequestProblem {
  return new RequestProblem('too-large', `a body has at most ${body_bytes_max} bytes`);
}

/** A body must be said to be JSON: a form of another site cannot say so. */
export function jsonOnly(): MiddlewareHandler<Env> {
  return async (c, next) => {
    const type = c.req.header('content-type');
    const hasBody = c.req.raw.body !== null && c.req.header('content-length') !== '0';
    if (c.req.method === 'POST' && hasBody && !/^application\/json\s*(?:;|$)/iu.test(type ?? '')) {
      throw new RequestProblem('unsupported-type', 'send the body as application/json');
    }
    await next();
  };
}

/** Finds out who asks, and how often. */
export function authenticate({ identify }: Pick<GuardOptions, 'identify'>): MiddlewareHandler<Env> {
  const limits = {
    read: new RateLimit(reads),
    change: new RateLimit(changes),
    wrong: new RateLimit(wrong_keys),
  };
  return async (c, next) => {
    if (open_paths.has(c.req.path)) return next();
    const now_ms = performance.now();
    let principal: Principal;
    try {
      principal = await identify(c);
    } catch (error) {
      if (error instanceof RequestProblem) slowDown(limits.wrong.take(addressOf(c), now_ms));
      throw error;
    }
    const limit = c.req.method === 'GET' ? limits.read : limits.change;
    slowDown(limit.take(principal.key_id, now_ms));
    c.set('principal', principal);
    return next();
  };
}

function slowDown(wait_s: number): void {
  if (wait_s === 0) return;
  throw new RequestProblem('too-many-requests', `ask again in ${wait_s} s`, { retry_after_s: wait_s });
}

/** The address of the asker; all share one where it is not known. */
export function addressOf(c: Context<Env>): string {
  const bindings: unknown = c.env;
  const incoming: unknown =
    typeof bindings === 'object' && bindings !== null ? Reflect.get(bindings, 'incoming') : undefined;
  const socket: unknown =
    typeof incoming === 'object' && incoming !== null ? Reflect.get(incoming, 'socket') : undefined;
  const address: unknown =
    typeof socket === 'object' && socket !== null ? Reflect.get(socket, 'remoteAddress') : undefined;
  return typeof address === 'string' ? address : '';
}
