/** Asks a web server over one network device, and compares what it answers (RFC 9110). */
import { Agent, type IncomingMessage, request as httpRequest } from 'node:http';
import { isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { messageOf } from '../../../src/errors.ts';
import { GatheredBytes } from '../../../src/platform/gathered-bytes.ts';
import { limitInterimAnswers } from '../../../src/platform/interim-answers.ts';
import { connectTcp } from '../../../src/platform/linux/bound-tcp.ts';
import { within } from '../../../src/platform/time.ts';
import { isPublicIp } from '../../../src/platform/public-ip.ts';
import { texts } from '../texts.ts';
import type { CheckOutcome, CheckWay, HttpCheck } from './api.ts';
import { askDns, namedAddresses } from './dns.ts';
import { record_type } from './dns-message.ts';

/** Of an answer that is searched for the expected text. */
const body_bytes_max = 65_536;

/** Passes when status and text are the expected ones. A redirect is never followed: it is what a portal answers. */
export async function checkHttp(check: HttpCheck, way: CheckWay): Promise<CheckOutcome> {
  const ending = new AbortController();
  const signal = AbortSignal.any([way.signal, ending.signal]);
  let silence: string = texts.http_silent(check.url.href);
  if (check.ip === null) silence = texts.dns_silent(hostOf(check.url), check.resolver ?? '');
  const onAddress = (): void => void (silence = texts.http_silent(check.url.href));
  try {
    const outcome = await within(way.timeout_ms, ask(check, { ...way, signal }, onAddress), way.signal);
    return outcome === undefined ? silence : outcome;
  } catch (error) {
    return texts.http_failed(check.url.href, messageOf(error));
  } finally {
    ending.abort();
  }
}

async function ask(check: HttpCheck, way: CheckWay, onAddress: () => void): Promise<CheckOutcome> {
  const found = await addressOf(check, way);
  if ('outcome' in found) return found.outcome;
  onAddress();
  const { host_ip } = found;
  const isTls = check.url.protocol === 'https:';
  const port = Number(check.url.port) || (isTls ? 443 : 80);
  const socket = await connectTcp({ ...way, host_ip, port });
  const destroy = (): void => void socket.destroy();
  socket.on('error', () => undefined);
  way.signal.addEventListener('abort', destroy, { once: true });
  if (way.signal.aborted) destroy();
  try {
    return await compare(check, isTls ? secured(socket, check.url) : socket);
  } finally {
    way.signal.removeEventListener('abort', destroy);
    destroy();
  }
}

/** The certificate must be that of the host: a portal has none. */
function secured(socket: Socket, url: URL): Socket {
  const host = hostOf(url);
  const secure = connectTls({ socket, host, ...(isIP(host) === 0 ? { servername: host } : {}) });
  return secure;
}

async function compare(check: HttpCheck, socket: Socket): Promise<CheckOutcome> {
  const { url, status, body } = check;
  const response = await get(url, socket);
  if (response.statusCode !== status) {
    const to = response.headers.location;
    return texts.http_unexpected(url.href, response.statusCode ?? 0, { expected: status, to });
  }
  if (body === null) return null;
  const text = await readText(response);
  return text.includes(body) ? null : texts.http_other_text(url.href);
}

async function get(url: URL, socket: Socket): Promise<IncomingMessage> {
  const agent = Object.assign(new Agent({ maxSockets: 1 }), { createConnection: () => socket });
  const answered = Promise.withResolvers<IncomingMessage>();
  const headers = {
    host: url.host,
    'user-agent': 'kit-connector',
    accept: '*/*',
    'accept-encoding': 'identity',
  };
  const path = `${url.pathname}${url.search}`;
  const request = httpRequest(
    { agent, path, headers: { ...headers, connection: 'close' } },
    answered.resolve,
  );
  limitInterimAnswers(request);
  request.on('error', answered.reject);
  request.end();
  return answered.promise;
}

async function readText(response: IncomingMessage): Promise<string> {
  const body = new GatheredBytes(body_bytes_max);
  for await (const chunk of response) {
    if (!Buffer.isBuffer(chunk)) continue;
    body.add(chunk.subarray(0, body_bytes_max - body.length));
    if (body.length === body_bytes_max) break;
  }
  return body.all().toString('utf8');
}

/**
 * Over the link, since the system's resolver leaves by the default route; IPv4 first. A false answer of a resolver would choose
 * where the request goes, so names lead to public addresses only. A server in a private network is configured by its address.
 */
async function addressOf(
  { url, ip, resolver }: HttpCheck,
  way: CheckWay,
): Promise<{ readonly host_ip: string } | { readonly outcome: CheckOutcome }> {
  if (ip !== null) return { host_ip: ip };
  const [name, server] = [hostOf(url), resolver ?? ''];
  let refused: CheckOutcome = null;
  let unexpected: CheckOutcome = null;
  for (const type of [record_type.a, record_type.aaaa]) {
    const answer = await askDns({ server, name, type }, way);
    if (answer && 'refusal' in answer) refused = texts.dns_refused(name, server, answer.refusal);
    if (!answer || 'refusal' in answer) continue;
    const host_ip = answer.addresses.find(isPublicIp);
    if (host_ip !== undefined) return { host_ip };
    if (answer.addresses.length > 0)
      unexpected = texts.dns_unexpected(name, server, namedAddresses(answer.addresses));
  }
  return { outcome: unexpected ?? refused ?? texts.dns_silent(name, server) };
}

function hostOf(url: URL): string {
  return url.hostname.replaceAll(/[[\]]/gu, '');
}
