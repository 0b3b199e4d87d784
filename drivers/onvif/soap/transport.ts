/** One HTTP exchange with a camera: bounded in time and size, after a certificate check. */
import { Agent, type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http';
import { Agent as SecureAgent, request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import { TLSSocket } from 'node:tls';
import { gunzipSync, inflateSync } from 'node:zlib';
import { bareFingerprint } from '../../../src/toolkit/device/certificate-check.ts';
import { isLegacyTls } from '../../../src/toolkit/device/connection-fault.ts';
import { contextWithoutAuthorities, legacy_tls_settings } from '../../../src/toolkit/device/pinned-http.ts';
import { texts as device_texts } from '../../../src/toolkit/device/texts.ts';
import { hasCode } from '../../../src/platform/errors.ts';
import { GatheredBytes } from '../../../src/platform/gathered-bytes.ts';
import { limitInterimAnswers } from '../../../src/platform/interim-answers.ts';
import { plainIp } from '../../../src/platform/networks.ts';
import { texts } from '../texts.ts';
import { isUtf8 } from 'node:buffer';

export interface Answered {
  readonly status: number;
  readonly bytes: Buffer;
  /** `Content-Type`. */
  readonly type: string | undefined;
  /** `WWW-Authenticate`, one entry for each header. */
  readonly challenges: readonly string[];
  /** `Location` of a redirect, which is never followed: a login goes to the configured host alone. */
  readonly location: string | undefined;
  /** `Date`, milliseconds since 1970. */
  readonly date_ms: number | undefined;
  readonly local_address: string | undefined;
  readonly peer_address: string | undefined;
}

/** The certificate is not the expected one; nothing was sent. */
export class CertificateRefused extends Error {
  override readonly name = 'CertificateRefused';
}

/** The answer exceeds the size limit. */
export class ReplyRefused extends Error {
  override readonly name = 'ReplyRefused';
}

export interface Exchange {
  readonly url: URL;
  readonly method: 'GET' | 'POST';
  readonly body: string;
  /** A larger answer is refused. */
  readonly bytes_max: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly agent: Agent;
  /** Where to connect, whatever the name in `url` leads to. */
  readonly address?: string | undefined;
  /** Of the name in `url`. */
  readonly lookup?: LookupFunction | undefined;
  readonly fingerprint: string | undefined;
  /** Aborts at the deadline of the whole exchange, however slowly bytes come. */
  readonly signal: AbortSignal;
}

/** Wait for the end of a reply whose envelope is complete: some cameras announce a wrong length or none, and stay connected. */
const end_wait_ms = 500;

/** Requests that one camera serves at once: a pull, a command and its stop, a renewal. */
const sockets_max = 4;

/**
 * A connection for each request: the small HTTP servers of cameras close idle ones, which cannot be distinguished
 * from failures. TLS sessions are not resumed either, since a resumed one has no certificate to compare.
 */
export function agentFor({
  secure,
  fingerprint,
  legacy_tls = false,
}: {
  readonly secure: boolean;
  readonly fingerprint: string | undefined;
  readonly legacy_tls?: boolean;
}): Agent {
  const settings = { keepAlive: false, maxSockets: sockets_max };
  if (!secure) return new Agent(settings);
  const own = legacy_tls ? legacy_tls_settings : {};
  const context =
    fingerprint === undefined ? own : { secureContext: contextWithoutAuthorities({ legacy_tls }) };
  return new SecureAgent({ ...settings, maxCachedSessions: 0, ...context });
}

/** Rejects with `CertificateRefused`, `ReplyRefused`, or the error of the connection. */
export async function exchange(what: Exchange): Promise<Answered> {
  const { promise, resolve, reject } = Promise.withResolvers<Answered>();
  const settings = {
    method: what.method,
    agent: what.agent,
    lookup: what.lookup,
    headers: headersOf(what),
    ...(what.address === undefined ? {} : { hostname: what.address }),
    // The small servers of cameras break rules that protect proxies; here nothing follows on the connection.
    insecureHTTPParser: true,
  };
  const isSecure = what.url.protocol === 'https:';
  const request = isSecure
    ? httpsRequest(what.url, { ...settings, rejectUnauthorized: what.fingerprint === undefined })
    : httpRequest(what.url, settings);
  limitInterimAnswers(request);
  const echo = mendHead(request);
  request.on('error', (error) =>
    reject(echo.isEchoAlone ? new Error(texts.request_echoed) : explain(error, what)),
  );
  // In every state of the exchange: not each of them ends with an event.
  const cancel = (): void => {
    reject(new Error('cancelled'));
    request.destroy();
  };
  if (what.signal.aborted) cancel();
  what.signal.addEventListener('abort', cancel, { once: true });
  request.on('response', (response) => collect(request, response, { ...what, resolve, reject }));
  if (isSecure && what.fingerprint !== undefined) sendOnceTrusted(request, what, what.fingerprint);
  else request.end(what.body);
  return promise;
}

const status_line = /HTTP\/1\.[01] \d{3}[ \r\n]/u;
const line_feed = 0x0a;
/** Of a reply; what follows is not mended. */
const head_bytes_max = 4_096;

/**
 * Makes of the first bytes of a reply what the parser takes, in place. Some cameras of TP-Link send the head of the request, with NULs
 * between its words, in front of it (home-assistant/core#85902, AlexxIT/go2rtc#1589, koush/scrypted#1246): line feeds are skipped there.
 */
function mendHead(request: ClientRequest): { readonly isEchoAlone: boolean } {
  const start = Buffer.from(`${request.method} /`);
  const echo = { isEchoAlone: false };
  request.once('socket', (socket) => {
    const mend = (chunk: Buffer): void => {
      const isEcho = echo.isEchoAlone || chunk.subarray(0, start.length).equals(start);
      const end = isEcho ? chunk.toString('latin1').search(status_line) : 0;
      echo.isEchoAlone = end < 0;
      chunk.fill(line_feed, 0, end < 0 ? chunk.length : end);
      if (end < 0) return;
      mendHeaders(chunk, end);
      socket.off('data', mend);
    };
    socket.prependListener('data', mend);
  });
  return echo;
}

/**
 * Some send a blank before the colon of a header (home-assistant/core#38673), which the parser takes behind it, or a value in a line of its
 * own (home-assistant/core#151745), which becomes a header that means nothing.
 */
function mendHeaders(chunk: Buffer, begin: number): void {
  const text = chunk.toString('latin1', begin, begin + head_bytes_max);
  const end = text.search(/\r?\n\r?\n/u);
  // A line that goes on in the next chunk stays as it is.
  const head = text.slice(0, end < 0 ? text.lastIndexOf('\n') + 1 : end);
  const mended = head
    .replaceAll(/^([\w-]+)( +):/gmu, '$1:$2')
    .replaceAll(
      /(?<=\n)(?![\w!#$%&'*+.^`|~-]+:|[ \t])[^\r\n]+/gu,
      (line) => `${'x'.repeat(line.length - 1)}:`,
    );
  if (mended !== head) chunk.write(mended, begin, 'latin1');
}

function headersOf({ url, body, headers }: Exchange): Record<string, string | number> {
  const length = body === '' ? {} : { 'Content-Length': Buffer.byteLength(body) };
  return { Host: url.host, ...headers, ...length, Connection: 'close' };
}

/** Compares the certificate before a byte of the request is sent: its head may contain a login. */
function sendOnceTrusted(request: ClientRequest, { body }: Exchange, fingerprint: string): void {
  request.once('socket', (socket) => {
    socket.once('secureConnect', () => {
      const shown = socket instanceof TLSSocket ? socket.getPeerCertificate().fingerprint256 : '';
      const seen = bareFingerprint(shown);
      if (seen === fingerprint) request.end(body);
      else {
        const sentence = texts.other_fingerprint(seen);
        request.destroy(new CertificateRefused(sentence));
      }
    });
  });
}

function collect(
  request: ClientRequest,
  response: IncomingMessage,
  {
    bytes_max,
    resolve,
    reject,
  }: Pick<Exchange, 'bytes_max'> & { resolve: (answered: Answered) => void; reject: (error: Error) => void },
): void {
  const reply = new GatheredBytes(bytes_max);
  const local_address = response.socket.localAddress;
  const { remoteAddress } = response.socket;
  const peer_address = remoteAddress && plainIp(remoteAddress);
  // Some cut its page off (home-assistant/core#43376).
  const isChallenge = response.statusCode === 401 && response.headers['www-authenticate'] !== undefined;
  const isWhole = (): boolean => isChallenge || endsEnvelope(reply.last(tail_bytes));
  let waiting: NodeJS.Timeout | undefined;
  let isOver = false;
  response.on('data', (chunk: Buffer) => {
    clearTimeout(waiting);
    if (!reply.add(chunk)) request.destroy(new ReplyRefused(texts.reply_large(bytes_max)));
    else if (isWhole()) waiting = setTimeout(end, end_wait_ms);
  });
  response.on('error', (error) => {
    if (isWhole()) end();
    else reject(error);
  });
  response.once('end', () => end());
  const end = (): void => {
    clearTimeout(waiting);
    isOver = true;
    const unpacked = unpack(reply.all(), response.headers['content-encoding'], bytes_max);
    if (unpacked instanceof Error) {
      reject(unpacked);
      return;
    }
    resolve({
      status: response.statusCode ?? 0,
      bytes: unpacked,
      type: response.headers['content-type'],
      challenges: response.headersDistinct['www-authenticate'] ?? [],
      location: response.headers.location,
      date_ms: timeOf(response.headers.date),
      local_address,
      peer_address,
    });
    if (!response.complete) request.destroy();
  };
  // The library never returns when the connection ends in the middle of a reply.
  response.once('close', () => {
    clearTimeout(waiting);
    if (!isOver) reject(new Error(texts.closed_in_reply));
  });
}

const encodings: ReadonlyMap<string, typeof gunzipSync> = new Map([
  ['gzip', gunzipSync],
  ['x-gzip', gunzipSync],
  ['deflate', inflateSync],
]);

/** Some cameras compress without being asked for it. */
function unpack(bytes: Buffer, encoding: string | undefined, bytes_max: number): Buffer | ReplyRefused {
  const name = encoding?.trim().toLowerCase() ?? '';
  if (name === '' || name === 'identity') return bytes;
  const read = encodings.get(name);
  if (!read) return new ReplyRefused(texts.reply_encoded(name));
  try {
    return read(bytes, { maxOutputLength: bytes_max });
  } catch (error) {
    const isLarge = hasCode(error, 'ERR_BUFFER_TOO_LARGE');
    return new ReplyRefused(isLarge ? texts.reply_large(bytes_max) : texts.reply_not_unpacked);
  }
}

function timeOf(header: string | undefined): number | undefined {
  const time_ms = Date.parse(header ?? '');
  return Number.isNaN(time_ms) ? undefined : time_ms;
}

/** Adds the remedy to errors of certificates that no authority signed. */
function explain(error: Error, { url }: Exchange): Error {
  const code = 'code' in error ? String(error.code) : '';
  if (/CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME/u.test(code)) {
    const how = `openssl s_client -connect ${url.host} </dev/null | openssl x509 -noout -fingerprint -sha256`;
    return new CertificateRefused(texts.not_trusted(code, how));
  }
  return isLegacyTls(code) ? new Error(device_texts.legacy_tls_only, { cause: error }) : error;
}

// Decodes the bytes of a reply (XML 1.0, appendix F). Pure.

/** Where the declaration of an encoding stands. */
const head_bytes = 256;
const marks: readonly (readonly [start: readonly number[], encoding: string])[] = [
  [[0xff, 0xfe], 'utf-16le'],
  [[0xfe, 0xff], 'utf-16be'],
  // The sign `<` of a reply without a byte order mark.
  [[0x3c, 0x00], 'utf-16le'],
  [[0x00, 0x3c], 'utf-16be'],
];
/** Closes the envelope; what may follow is white space or NUL. */
const envelope_end = /<\/(?:[\w.-]{1,64}:)?Envelope\s{0,8}>[\s\0]{0,16}$/u;
/** Bytes at the end of a reply that `endsEnvelope` looks at. */
const tail_bytes = 128;

/** What is UTF-8 is read as that, whatever it declares; anything else as it declares in its text, or in its header. */
export function replyText(bytes: Buffer, content_type: string | undefined): string {
  const [, wide] = marks.find(([start]) => start.every((byte, at) => bytes[at] === byte)) ?? [];
  if (wide !== undefined) return new TextDecoder(wide).decode(bytes);
  if (isUtf8(bytes)) return bytes.toString('utf8');
  const head = bytes.toString('latin1', 0, head_bytes);
  const declared = /\sencoding\s?=\s?["']([\w.-]{1,32})["']/u.exec(head)?.[1];
  const label = declared ?? /charset="?([\w.-]{1,32})/iu.exec(content_type ?? '')?.[1] ?? 'utf-8';
  try {
    return new TextDecoder(label).decode(bytes);
  } catch {
    return bytes.toString('utf8');
  }
}

/** Whether an envelope ends where these bytes end, whatever length was announced. */
function endsEnvelope(tail: Buffer): boolean {
  return envelope_end.test(tail.toString('latin1'));
}
