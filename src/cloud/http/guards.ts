/** Middleware of every route: authentication, rate limits, host names, bodies, query parameters, compression and CORS. */
import { randomUUID } from 'node:crypto';
import type { Context, MiddlewareHandler } from 'hono';
import { countValues, request_limits } from '../../contract/bounded-json.ts';
import { messageOf } from '../../platform/errors.ts';
import { gather } from '../../platform/gathered-bytes.ts';
import { KeyedSemaphore } from '../../platform/semaphore.ts';
import { turn } from '../../platform/time.ts';
import { KeyedTokenBuckets, type Rate, type TokenBucket } from '../../platform/token-bucket.ts';
import { type Asker, type Gate, hasCookieOnly, secondsToWait } from '../access/gate.ts';
import { demandScope } from '../principal.ts';
import { map_archive_path } from '../api/map-resources.ts';
import { RequestProblem } from '../api/problem.ts';
import { type Env, takesPassword } from './context.ts';
import { texts } from '../texts.ts';
import { compress, COMPRESSIBLE_CONTENT_TYPE_REGEX } from 'hono/compress';
import { etag, RETAINED_304_HEADERS } from 'hono/etag';
import { cors } from 'hono/cors';
import { closest, distance } from 'fastest-levenshtein';
import type { OpenAPIHono } from '@hono/zod-openapi';
import { matchedRoutes } from 'hono/route';
import { z } from 'zod';

export const body_bytes_max = 64 * 1024;
/** Longer bodies are parsed in separate turns of the event loop: one of 39 kB takes up to 35 ms. */
const long_chars = 4 * 1024;
/** Starting a session is the only request with a body that needs no key before it is read. */
const session_path = '/api/session';
const session_bytes_max = 4 * 1024;

/** Requests a second of one key, over time. */
export interface RequestLimits {
  readonly reads_per_s: number;
  readonly changes_per_s: number;
  /** Push Location, single and in batches. */
  readonly fixes_per_s: number;
  /** Parts of the map: a screen of it takes dozens. */
  readonly map_per_s: number;
}
export const request_limits_default: RequestLimits = {
  reads_per_s: 20,
  changes_per_s: 10,
  fixes_per_s: 50,
  map_per_s: 100,
};

/**
 * The seconds of requests that a key may send at once: a script that does one thing after another gets through, and what a key
 * costs over time stays the same.
 */
const burst_s = 20;
/** A part of the map may have megabytes. */
const map_burst_s = 2;
/** Offers of viewers are SDP. */
const sdp_path = /\/whep\/?$/u;
const methods_with_body: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

export interface GuardOptions {
  readonly gate: Gate;
  /** WebRTC servers that the page may ask for video. */
  readonly media_origins: readonly string[];
  readonly limits: RequestLimits;
}

export function requestId(): MiddlewareHandler<Env> {
  return async (c, next) => {
    c.set('request_id', randomUUID());
    await next();
  };
}

/** Sets the security headers: against embedding and content sniffing. */
export function securityHeaders({
  media_origins,
}: Pick<GuardOptions, 'media_origins'>): MiddlewareHandler<Env> {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "worker-src 'self'",
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
    if (c.req.path.startsWith('/api')) {
      // A response with an ETag may be kept by its client, which asks each time whether it is still the same; parts of the map
      // for longer.
      const caching = c.res.headers.has('etag') ? 'private, no-cache' : 'no-store';
      if (!c.res.ok || !c.res.headers.has('cache-control')) c.header('Cache-Control', caching);
    }
  };
}

/** Answered under any name, since they say nothing but that: probes send that of the container, or none (nulab/backlog-mcp-server#214). */
const probed: ReadonlySet<string> = new Set(['/live', '/ready']);

/** Rejects foreign host names: a page of another site that points its name here (DNS rebinding) may not read responses. */
export function hostGuard({ gate }: Pick<GuardOptions, 'gate'>): MiddlewareHandler<Env> {
  return async (c, next) => {
    const { host } = askerOf(c).headers;
    if (!gate.serves(host) && !probed.has(c.req.path)) {
      throw new RequestProblem('misdirected-request', texts.host_not_served(host ?? ''));
    }
    await next();
  };
}

/**
 * Limits the body also without a Content-Length. A request with an empty body is one without a body, whatever its
 * Content-Type: `curl -X POST` and `curl -d ''` send a command without parameters.
 */
export function limitBody(): MiddlewareHandler<Env> {
  return async (c, next) => {
    const length = c.req.header('content-length');
    const bytes_max = c.req.path === session_path ? session_bytes_max : body_bytes_max;
    if (length !== undefined && Number(length) > bytes_max) throw tooLarge(bytes_max);
    if (methods_with_body.has(c.req.method) && (length === undefined || Number(length) === 0)) {
      const { method, url } = c.req.raw;
      const body = c.req.raw.body ? await readBounded(c.req.raw.body, bytes_max) : Buffer.alloc(0);
      const headers = new Headers(c.req.raw.headers);
      if (body.length === 0) headers.delete('content-type');
      c.req.raw = new Request(url, { method, headers, ...(body.length > 0 && { body }) });
    }
    await next();
  };
}

async function readBounded(
  stream: AsyncIterable<Uint8Array>,
  bytes_max: number,
): Promise<Buffer<ArrayBuffer>> {
  const body = await gather(stream, bytes_max);
  if (!body) throw tooLarge(bytes_max);
  return body;
}

function tooLarge(bytes_max: number): RequestProblem {
  return new RequestProblem('too-large', texts.body_too_large(bytes_max));
}

/**
 * Requires the JSON content type, which a form of another site cannot send. With a key in the header, which no form can send either,
 * a JSON body of another type is accepted: `curl -d` names that of forms. Compressed bodies are refused: 64 KiB need no compression,
 * and a small one could become a large one.
 */
export function jsonOnly(): MiddlewareHandler<Env> {
  let last_turn = Promise.resolve();
  return async (c, next) => {
    if (!hasJson(c)) return next();
    const coding = c.req.header('content-encoding') ?? '';
    if (!/^(?:identity)?$/iu.test(coding.trim())) {
      throw new RequestProblem('unsupported-type', texts.body_coded(coding), { codings: 'identity' });
    }
    const type = c.req.header('content-type') ?? '';
    const isJson = /^application\/json\s*(?:;|$)/iu.test(type);
    c.set('merges', /^application\/merge-patch\+json\s*(?:;|$)/iu.test(type));
    const hasKey = c.req.header('x-api-key') !== undefined;
    if (!isJson && !hasKey) throw new RequestProblem('unsupported-type', texts.body_not_json);
    const text = await c.req.text();
    if (text.length > long_chars) {
      last_turn = last_turn.then(turn);
      await last_turn;
    }
    if (!isJson && !/^\s*\{/u.test(text)) throw new RequestProblem('unsupported-type', texts.body_not_json);
    boundJson(text);
    refuseLostMember(text);
    if (!isJson) {
      const headers = new Headers(c.req.raw.headers);
      headers.set('content-type', 'application/json');
      c.req.raw = new Request(c.req.url, { method: c.req.method, headers, body: text });
    }
    return next();
  };
}

/** Whether there is a body that must be JSON: the offer of a viewer is SDP. Throws `unsupported-type` for any other one to its path. */
function hasJson(c: Context<Env>): boolean {
  if (!methods_with_body.has(c.req.method) || c.req.raw.body === null) return false;
  if (!sdp_path.test(c.req.path)) return true;
  if (/^application\/sdp\s*(?:;|$)/iu.test(c.req.header('content-type') ?? '')) return false;
  throw new RequestProblem('unsupported-type', texts.body_not_sdp);
}

/** Identifies the client again once its body is there: it may take 15 s to come, and meanwhile its key may have been revoked. */
export function knownAfterBody({ gate }: Pick<GuardOptions, 'gate'>): MiddlewareHandler<Env> {
  return async (c, next) => {
    const isChecked = methods_with_body.has(c.req.method) && c.req.path !== session_path;
    if (isChecked && !(await gate.isStillKnown(c.var.principal, askerOf(c)))) {
      throw new RequestProblem('unauthorised', texts.no_valid_key);
    }
    return next();
  };
}

/** Checks depth and number of values before parsing: deeply nested values cannot be serialised again. */
function boundJson(text: string): void {
  try {
    countValues(text, request_limits);
  } catch (error) {
    throw new RequestProblem('bad-request', texts.body_rejected(messageOf(error)));
  }
}

/** Refuses a member that objects cannot hold: it would be left out without a word, from metadata and payloads too. */
function refuseLostMember(text: string): void {
  // Each of its characters may be written as an escape sequence.
  if (!/__proto__|\\u00[567]/iu.test(text)) return;
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return; // The route reports what is wrong with it.
  }
  if (hasLostMember(body)) throw new RequestProblem('bad-request', texts.body_rejected(texts.lost_member));
}

/** The depth of a body is bounded. */
function hasLostMember(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Object.hasOwn(value, '__proto__') || Object.values(value).some(hasLostMember);
}

/** Identifies the client and applies its rate limits. Starting a session includes authentication. */
export function authenticate({
  gate,
  limits,
}: Pick<GuardOptions, 'gate' | 'limits'>): MiddlewareHandler<Env> {
  const buckets = {
    read: new KeyedTokenBuckets(rateOf(limits.reads_per_s)),
    change: new KeyedTokenBuckets(rateOf(limits.changes_per_s)),
    fix: new KeyedTokenBuckets(rateOf(limits.fixes_per_s)),
    map: new KeyedTokenBuckets(rateOf(limits.map_per_s, map_burst_s)),
  };
  return async (c, next) => {
    if (c.req.path === session_path && c.req.method === 'POST') return next();
    // Browsers send no key with the preflight request of a page; the answer holds what the OpenAPI document holds.
    if (c.req.method === 'OPTIONS') return next();
    const asker = takesPassword(c.req.path) ? withPassword(askerOf(c)) : askerOf(c);
    const principal = await gate.identify(asker);
    const isRead = c.req.method === 'GET' || c.req.method === 'HEAD';
    if (hasCookieOnly(asker.headers)) demandOwnPage(gate, asker, isRead ? 'read' : 'change');
    slowDown(buckets[kindOf(c.req.path, isRead ? 'read' : 'change')].of(principal.key_id));
    if (isRead && c.req.path !== session_path) demandScope(principal, 'read');
    c.set('principal', principal);
    return next();
  };
}

/** The password of HTTP Basic as the key (RFC 7617); the user name does not matter. */
function withPassword(asker: Asker): Asker {
  const [, coded] = /^Basic +([\w+/=]+)$/iu.exec(asker.headers.authorization ?? '') ?? [];
  if (coded === undefined || asker.headers['x-api-key'] !== undefined) return asker;
  const key = Buffer.from(coded, 'base64')
    .toString()
    .replace(/^[^:]*:/u, '');
  return { ...asker, headers: { ...asker.headers, 'x-api-key': key } };
}

/** Paths of Push Location. */
const pushed = /\/locations?$/u;

/** The limit that a request counts for. */
function kindOf(path: string, kind: 'read' | 'change'): 'read' | 'change' | 'fix' | 'map' {
  if (kind === 'change') return pushed.test(path) ? 'fix' : 'change';
  return path === map_archive_path ? 'map' : 'read';
}

function rateOf(per_s: number, seconds = burst_s): Rate {
  return { perSecond: per_s, burst: Math.max(1, Math.ceil(seconds * per_s)) };
}

/** Rejects requests of foreign pages: browsers send the cookie with any request, but only the page of this service adds the headers. */
function demandOwnPage(gate: Gate, asker: Asker, kind: 'read' | 'change'): void {
  const { origin, 'x-kit-page': mark, 'content-type': type } = asker.headers;
  const isForm = !/^application\/(?:json|sdp)/u.test(type ?? '');
  const isMarked = origin !== undefined && mark === '1' && !isForm;
  if (!gate.isOwnPage(asker)) throw new RequestProblem('forbidden', texts.foreign_origin(asker.headers));
  if (kind === 'read' || isMarked) return;
  throw new RequestProblem('forbidden', texts.foreign_page);
}

function slowDown(bucket: TokenBucket): void {
  const wait_s = secondsToWait(bucket);
  if (wait_s === 0) return;
  throw new RequestProblem('too-many-requests', texts.too_many_requests(wait_s), {
    retry_after_s: wait_s,
  });
}

/** Returns headers and address of the client. */
export function askerOf(c: Context<Env>): Asker {
  const { headers, socket } = c.env.incoming;
  return { headers, address: socket.remoteAddress ?? '' };
}

/** Headers of CORS belong to a 304 too: without them a page of another origin may not read it. */
const retainedHeaders = [
  ...RETAINED_304_HEADERS,
  'access-control-allow-origin',
  'access-control-expose-headers',
];

/** Compresses with gzip or deflate, as the client accepts. What is compressed already, such as the page, stays as it is. */
export function compressed(): MiddlewareHandler {
  const packs = compress({
    contentTypeFilter: (type) =>
      COMPRESSIBLE_CONTENT_TYPE_REGEX.test(type) || /^application\/(?:x-ndjson|geo\+json)/u.test(type),
  });
  return async (c, next) => (changeable.test(c.req.path) ? next() : packs(c, next));
}

/** An export has no end that could be waited for: hashing it would hold all of it in memory. The file of the map has its own tag. */
const streamed = /\/(?:export|archive\.pmtiles)\/?$/u;

/** What can be changed with `If-Match`: small, and never compressed, so that its tag is that of its bytes. */
const changeable =
  /^\/api\/(?:kits\/[^/]+\/(?:assets|alarms)\/[^/]+|webhooks\/[^/]+|history\/retention)\/?$/u;

/** Adds an ETag to successful reads. It is weak where the same content may leave compressed or not. */
export function tagged(): MiddlewareHandler<Env> {
  const weak = etag({ weak: true, retainedHeaders });
  const strong = etag({ retainedHeaders });
  return async (c, next) => {
    if (streamed.test(c.req.path)) return next();
    return changeable.test(c.req.path) ? strong(c, next) : weak(c, next);
  };
}

/**
 * Refuses a change whose `If-Match` does not have the ETag that a read returns now, by strong comparison (RFC 9110, section 13.1.1;
 * OpenMetadata#30885). Such changes of one thing follow each other in this process.
 */
export function conditional(app: OpenAPIHono<Env>): MiddlewareHandler<Env> {
  const turns = new KeyedSemaphore(1);
  return async (c, next) => {
    const wanted = c.req.header('if-match');
    const isChange = ['PUT', 'PATCH', 'DELETE'].includes(c.req.method);
    if (wanted === undefined || !isChange || !changeable.test(c.req.path)) return next();
    const tags = wanted.split(',').map((each) => each.trim());
    const bare = tags.find((each) => !/^(?:\*|(?:W\/)?".*")$/u.test(each));
    if (bare !== undefined) throw new RequestProblem('bad-request', texts.unquoted_tag(bare));
    await turns.run(c.req.path, async () => {
      const headers = new Headers(c.req.raw.headers);
      for (const name of ['if-match', 'if-none-match', 'content-type', 'content-length'])
        headers.delete(name);
      const now = await app.request(new Request(c.req.url, { headers }), undefined, c.env);
      const tag = now.headers.get('etag');
      // What is not there is reported as such.
      if (now.ok && (tag === null || !tags.some((each) => each === '*' || each === tag)))
        throw new RequestProblem('precondition-failed', mismatch(tags, tag ?? ''));
      await next();
    });
  };
}

/** nginx makes a tag weak, Apache and Caddy add the coding (hapijs/hapi#3956, mdn/content#4343): such a change would be refused for ever. */
function mismatch(tags: readonly string[], tag: string): string {
  const changed = tags.find((each) => /^W\/|-(?:gzip|br|zstd)"$/u.test(each));
  return changed === undefined ? texts.changed_meanwhile(tag) : texts.changed_tag(changed);
}

/** How long browsers may keep the answer to a preflight request. */
const preflight_s = 600;

/**
 * Lets pages of configured origins use the API with a key (Fetch standard, CORS); their cookies never count.
 * Answers preflight requests of these origins and adds the headers of CORS. Other preflight requests get the methods of
 * the path, as any OPTIONS request, and no such header: browsers then refuse the request of the page.
 */
export function crossOrigin({ gate }: { readonly gate: Gate }): MiddlewareHandler<Env> {
  const { origins } = gate;
  if (origins.length === 0) return async (_, next) => next();
  const allow = cors({
    origin: [...origins],
    allowMethods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
    allowHeaders: [
      'X-API-Key',
      'Content-Type',
      'Idempotency-Key',
      'If-None-Match',
      'If-Match',
      'Range',
      'If-Range',
    ],
    exposeHeaders: ['Location', 'Retry-After', 'ETag', 'Link', 'Content-Range', 'Accept-Ranges'],
    maxAge: preflight_s,
  });
  return async (c, next) => {
    const isOptions = c.req.method === 'OPTIONS';
    const origin = c.req.header('origin') ?? '';
    if (!isOptions || (origins.includes(origin) && c.req.header('access-control-request-method')))
      return allow(c, next);
    await next();
    if (!origins.includes(origin)) return;
    // A request of the page itself, which names the servers for viewers.
    c.header('Access-Control-Allow-Origin', origin);
    c.header('Access-Control-Expose-Headers', 'Link');
    c.header('Vary', 'Origin', { append: true });
  };
}

/** What clients add against caches: jQuery, habpanel of openHAB, Ext JS (wagtail#1671, ckan#2011). */
const against_caches = /^_(?:t|dc)?$/u;

/**
 * Refuses query parameters that are none of a route's: a filter or a limit that is misspelt would be left out in silence, and the
 * answer would look like that to the question (OGC API Features, requirement 8). A route that has no parameters ignores them, as the
 * interface does: clients add some against caches. So does one that has none in the interface (a loose schema), but for what looks
 * like its own. Comes after authentication: `app` has its routes by the first request.
 */
export function knownParameters(app: OpenAPIHono<Env>): MiddlewareHandler<Env> {
  let known: ReadonlyMap<string, Parameters> | undefined;
  return async (c, next) => {
    const asked = [...new URL(c.req.url).searchParams.keys()].filter((name) => !against_caches.test(name));
    if (asked.length === 0) return next();
    known ??= parametersOf(app);
    for (const { method, path } of matchedRoutes(c)) {
      const { names, isOpen } = known.get(`${method} ${path}`) ?? { names: [], isOpen: true };
      const foreign = asked.find((name) => !names.includes(name) && (!isOpen || isMisspelt(name, names)));
      if (foreign !== undefined) throw new RequestProblem('bad-request', refusalOf(foreign, names));
    }
    return next();
  };
}

interface Parameters {
  readonly names: readonly string[];
  /** Others are ignored. */
  readonly isOpen: boolean;
}

/** The query parameters of each route that has some, by its method and path. */
function parametersOf(app: OpenAPIHono<Env>): ReadonlyMap<string, Parameters> {
  return new Map(
    app.openAPIRegistry.definitions.flatMap((each) => {
      if (each.type !== 'route') return [];
      const { method, path, request } = each.route;
      const query = request?.query instanceof z.ZodObject ? request.query : undefined;
      if (!query) return [];
      const parameters = { names: Object.keys(query.shape), isOpen: query.def.catchall !== undefined };
      return [[`${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/gu, ':$1')}`, parameters] as const];
    }),
  );
}

function refusalOf(foreign: string, names: readonly string[]): string {
  return texts.unknown_parameter(foreign, closest(foreign.toLowerCase(), names), names.join(', '));
}

function isMisspelt(foreign: string, names: readonly string[]): boolean {
  return names.some((name) => distance(foreign.toLowerCase(), name) <= letters_wrong_max);
}
const letters_wrong_max = 2;
