/** Runs the checks of one link for as long as it exists. */
import { Agent, type IncomingMessage, request as httpRequest } from 'node:http';
import { isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { messageOf } from '../../../src/platform/errors.ts';
import { texts } from '../texts.ts';
import { Wake } from '../../../src/toolkit/device/wake.ts';
import {
  type Check,
  type CheckerSpec,
  type CheckOutcome,
  type CheckReading,
  type CheckWay,
  labelOf,
  type HttpCheck,
} from './api.ts';
import { checkDns, askDns, namedAddresses, record_type } from './dns.ts';
import { GatheredBytes } from '../../../src/platform/gathered-bytes.ts';
import { limitInterimAnswers } from '../../../src/platform/interim-answers.ts';
import { connectTcp } from '../../../src/platform/linux/bound-tcp.ts';
import { within } from '../../../src/platform/time.ts';
import { isPublicIp } from '../../../src/platform/public-ip.ts';
import { untranslated } from '../probe/nat64.ts';

/** Failed rounds in a row until the verdict changes. A single pass suffices: only the far side gives that answer. */
const failed_after = 2;
/** Until the next round while the verdict may change. */
const doubt_ms = 5_000;
/** Until the next round of a link that fails, at most: its return should be seen soon. */
const failing_ms = 30_000;

/** Begins with a round at once; `hurry`: the next one begins now. A round asks one check, the next one only if that fails. */
export function startChecker(spec: CheckerSpec) {
  const wake = new Wake();
  const state: { now: CheckReading } = { now: unknown };
  void run(spec, wake, state);
  return { read: () => state.now, hurry: wake.trigger };
}

const unknown: CheckReading = {
  passed: null,
  passed_ms: null,
  asked_ms: null,
  failing_since_ms: null,
  reason: null,
};

async function run(spec: CheckerSpec, wake: Wake, state: { now: CheckReading }): Promise<void> {
  const { signal, device, log, onChange } = spec;
  let failures = 0;
  for (let round = 0; !signal.aborted; round += 1) {
    const begun_ms = performance.now();
    const { passed } = state.now;
    if (spec.ways().checks.length === 0) {
      failures = 0;
      state.now = unknown;
    } else {
      const reason = await failureOf(spec, round);
      if (signal.aborted) return;
      failures = reason === null ? 0 : failures + 1;
      state.now = after(state.now, { begun_ms, reason, failures });
    }
    if (state.now.passed !== passed) {
      const facts = { link: device, reason: state.now.reason };
      if (state.now.passed === false) log.warn(facts, texts.checks_failed);
      else if (state.now.passed === true && passed === false) log.info(facts, texts.checks_passed);
      onChange();
    }
    await wake.wait(pauseOf(state.now, failures, spec.interval_ms), signal);
  }
}

interface Round {
  readonly begun_ms: number;
  readonly reason: CheckOutcome;
  /** Failed rounds in a row, this one included. */
  readonly failures: number;
}

/** Pure. */
export function after(before: CheckReading, { begun_ms, reason, failures }: Round): CheckReading {
  const asked_ms = begun_ms;
  if (reason === null)
    return { passed: true, passed_ms: begun_ms, asked_ms, failing_since_ms: null, reason: null };
  return {
    passed: failures >= failed_after ? false : before.passed,
    passed_ms: before.passed_ms,
    asked_ms,
    failing_since_ms: before.failing_since_ms ?? begun_ms,
    reason,
  };
}

function pauseOf({ passed }: CheckReading, failures: number, interval_ms: number): number {
  if (failures === 0) return interval_ms;
  return Math.min(interval_ms, passed === false ? failing_ms : doubt_ms);
}

/** Why none of the checks passed, the first one's reason; null: one has. */
async function failureOf(
  { ways, device, timeout_ms, signal }: CheckerSpec,
  round: number,
): Promise<CheckOutcome> {
  const { checks, families } = ways();
  let reason: CheckOutcome = null;
  for (let at = 0; at < checks.length && !signal.aborted; at += 1) {
    const check = checks[(round + at) % checks.length];
    const outcome = check ? await outcomeOf(check, { device, families, timeout_ms, signal }) : null;
    if (outcome === null) return null;
    reason ??= outcome;
  }
  return reason;
}

async function outcomeOf(check: Check, way: CheckWay): Promise<CheckOutcome> {
  try {
    return await (check.kind === 'dns' ? checkDns(check, way) : checkHttp(check, way));
  } catch (error) {
    return texts.check_failed(labelOf(check), messageOf(error));
  }
}

const type_of = { 4: record_type.a, 6: record_type.aaaa } as const;

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
 * Over the link, since the system's resolver leaves by the default route; IPv4 first, unless the link has IPv6 alone: then a name
 * server that translates (DNS64, RFC 6147) gives IPv4 hosts an address too. A false answer of a resolver would choose
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
  for (const family of way.families) {
    const answer = await askDns({ server, name, type: type_of[family] }, way);
    if (answer && 'refusal' in answer) refused = texts.dns_refused(name, server, answer.refusal);
    if (!answer || 'refusal' in answer) continue;
    const host_ip = answer.addresses.find((address) => isPublicIp(untranslated(address)));
    if (host_ip !== undefined) return { host_ip };
    if (answer.addresses.length > 0)
      unexpected = texts.dns_unexpected(name, server, namedAddresses(answer.addresses));
  }
  return { outcome: unexpected ?? refused ?? texts.dns_silent(name, server) };
}

function hostOf(url: URL): string {
  return url.hostname.replaceAll(/[[\]]/gu, '');
}
