/** Checks the path to the broker below MQTT: its name, its port, its certificate. */
import { X509Certificate } from 'node:crypto';
import { lookup, Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import {
  connect as connectTls,
  type DetailedPeerCertificate,
  type PeerCertificate,
  type TLSSocket,
} from 'node:tls';
import type { BrokerConfig } from '../../kit/config/broker.ts';
import { validityWarning } from '../../kit/config/secrets.ts';
import { messageOf, systemReason } from '../../platform/errors.ts';
import { trustSystemAuthorities } from '../../platform/authorities.ts';
import { answered } from '../../mqtt/broker-addresses.ts';
import { plainFault } from '../../mqtt/faults.ts';
import { proxyOf } from '../../mqtt/proxy.ts';
import { openTunnel, small_groups, tlsOptions } from '../../mqtt/socket.ts';
import { brokerPlace, isTls } from '../../platform/broker-address.ts';
import { nameOfProxy, type Proxy } from '../../platform/proxy.ts';
import { type Finding, fail, ok, plain, warn } from './finding.ts';
import { keys_only, look_as_root, type Places } from './places.ts';
import { utcDay } from '../../platform/time.ts';
import { texts } from './texts.ts';

/** Codes with which this machine itself refuses to send. */
const own_refusals: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'EINVAL']);

const soon_ms = 30 * 86_400_000;

/** Stops at the first step that fails, since the later ones depend on it. */
export async function checkNetwork(
  broker: BrokerConfig,
  signal: AbortSignal,
  places: Places = keys_only,
): Promise<readonly Finding[]> {
  const url = new URL(broker.url);
  let proxy: Proxy | undefined;
  try {
    proxy = proxyOf(broker);
  } catch (error) {
    return [refusedTunnel(error, signal)];
  }
  const { host, port } = proxy ?? brokerPlace(url);
  const findings: Finding[] = broker.cert === undefined ? [] : [ownFinding(broker.cert, Date.now())];
  if (isIP(host) === 0) {
    const found = await resolveName(host);
    findings.push(found);
    if (found.level !== 'ok') return findings;
  }
  const reached = await reach(proxy ? 'proxy tcp' : 'broker tcp', host, port, signal);
  findings.push(reached);
  if (reached.level !== 'ok') return findings;
  const tunnel = await openTunnel(broker, signal).catch((error: unknown) =>
    error instanceof Error ? error : new Error(String(error)),
  );
  if (tunnel instanceof Error) return [...findings, refusedTunnel(tunnel, signal)];
  if (proxy) findings.push(ok('proxy', texts.proxy_connects(nameOfProxy(proxy), brokerPlace(url))));
  if (isTls(url)) findings.push(...(await checkTls(tunnel.stream, broker, places, signal)));
  tunnel.stream.on('error', () => undefined).destroy();
  return findings;
}

function refusedTunnel(error: unknown, signal: AbortSignal): Finding {
  const [finding = '', remedy = texts.check_host] = plain(
    signal.aborted ? 'timed out' : error instanceof Error ? plainFault(error) : messageOf(error),
  ).split('; ');
  return fail('proxy', finding, remedy);
}

async function resolveName(host: string): Promise<Finding> {
  try {
    const addresses = answered(host, await lookup(host, { all: true }));
    return ok('dns', `${host} is ${addresses.map(({ address }) => address).join(', ')}`);
  } catch (error) {
    if (codeOf(error) === 'NAME_BLOCKED') {
      const [finding = '', remedy = ''] = error instanceof Error ? plainFault(error).split('; ') : [];
      return fail('dns', finding, remedy);
    }
    if (codeOf(error) !== 'ENOTFOUND') return noAnswer(host);
    return fail('dns', texts.host_not_found(host, plain(systemReason(error))), texts.check_name_and_link);
  }
}

/** The system calls all of this EAI_AGAIN: only its name servers themselves show which of them it is. */
export async function noAnswer(
  host: string,
  resolver = new Resolver({ timeout: 2_000, tries: 1 }),
): Promise<Finding> {
  const servers = resolver.getServers().join(', ');
  const code = await resolver.resolve4(host).then(() => '', codeOf);
  if (code === 'ESERVFAIL')
    return fail('dns', texts.name_server_fails(host, servers), texts.check_name_server);
  if (code === 'EREFUSED')
    return fail('dns', texts.name_server_refuses(host, servers), texts.change_name_server);
  if (code === 'ECONNREFUSED') return fail('dns', texts.no_name_server(host, servers), texts.set_name_server);
  return fail('dns', texts.name_server_silent(host, servers), texts.check_name_and_link);
}

/** Whether the host accepts a TCP connection on the port. */
export async function reach(what: string, host: string, port: number, signal: AbortSignal): Promise<Finding> {
  const place = `${host} port ${port}`;
  const started_ms = performance.now();
  const socket = connectTcp({ host, port, signal });
  try {
    await once(socket, 'connect');
    return ok(what, texts.answers_within(place, Math.ceil(performance.now() - started_ms)));
  } catch (error) {
    return fail(what, `${place}: ${reasonOf(error, signal)}`, remedyOf(error));
  } finally {
    socket.destroy();
  }
}

function reasonOf(error: unknown, signal: AbortSignal): string {
  return signal.aborted ? 'timed out' : plain(systemReason(error));
}

function remedyOf(error: unknown): string {
  const code = codeOf(error);
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return texts.check_host_name;
  if (code === 'ECONNREFUSED') return texts.check_port;
  if (code === 'ENETUNREACH') return texts.check_links;
  return own_refusals.has(code) ? texts.check_own_rules : texts.check_host;
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : plain(messageOf(error));
}

/** The handshake with the configured certificates; verification errors are findings, so the handshake itself accepts them. */
async function checkTls(
  stream: Duplex,
  broker: BrokerConfig,
  places: Places,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  if (broker.ca === undefined) trustSystemAuthorities();
  const options = { ...tlsOptions(broker), rejectUnauthorized: false, ecdhCurve: small_groups };
  const socket = connectTls({ socket: stream, ...options });
  const host = broker.tls_name ?? brokerPlace(new URL(broker.url)).host;
  const stop = (): Socket => socket.destroy(new Error('timed out'));
  signal.addEventListener('abort', stop, { once: true });
  try {
    await once(socket, 'secureConnect');
    return [trustFinding(socket, host, places), validityFinding(socket.getPeerCertificate(), Date.now())];
  } catch (error) {
    return [
      fail(
        'broker tls',
        texts.handshake_failed(plain(error instanceof Error ? plainFault(error) : messageOf(error))),
        texts.check_tls_port,
      ),
    ];
  } finally {
    signal.removeEventListener('abort', stop);
    socket.on('error', () => undefined);
    socket.destroy();
  }
}

function trustFinding(socket: TLSSocket, host: string, places: Places): Finding {
  const error = socket.authorizationError;
  if (socket.authorized) return ok('broker tls', texts.tls_trusted(socket.getProtocol(), host));
  const code = error instanceof Error ? codeOf(error) : plain(String(error));
  const { why, remedy, isUnknown } = distrust(code, socket, host, places);
  const finding = texts.certificate_rejected(why, code);
  return isUnknown && places.isBlind
    ? warn('broker tls', finding, look_as_root)
    : fail('broker tls', finding, remedy);
}

/** The reason and the remedy for a code of OpenSSL or Node. */
function distrust(
  code: string,
  socket: TLSSocket,
  host: string,
  { ca }: Places,
): { readonly why: string; readonly remedy: string; readonly isUnknown?: true } {
  if (code.includes('EXPIRED')) {
    const authority = expiredAuthority(socket.getPeerCertificate(true), Date.now());
    if (authority) {
      const { subject, valid_to } = authority;
      const why = texts.authority_expired(plain(String(subject.CN ?? subject.O ?? '')), utcDay(valid_to));
      return { why, remedy: texts.renew_authority(ca) };
    }
    return {
      why: texts.has_expired,
      remedy: texts.renew_certificate_and_clock,
    };
  }
  if (code.includes('NOT_YET')) {
    return { why: texts.not_yet_valid, remedy: texts.check_clock };
  }
  if (code.includes('ALTNAME')) {
    const names = plain(socket.getPeerCertificate().subjectaltname ?? 'no name').replaceAll('DNS:', '');
    return {
      why: texts.other_name(names, host),
      remedy: texts.use_certificate_name,
    };
  }
  const { issuer } = socket.getPeerCertificate();
  return {
    isUnknown: true,
    why: texts.ca_not_trusted(plain(String(issuer.CN ?? ''))),
    remedy: texts.set_ca(ca),
  };
}

/** The first expired certificate above that of the broker, as far as they are known here; undefined: that of the broker itself has. */
function expiredAuthority(leaf: DetailedPeerCertificate, now_ms: number): PeerCertificate | undefined {
  for (let at = leaf; Date.parse(at.valid_to) >= now_ms; at = at.issuerCertificate) {
    const { issuerCertificate: next } = at;
    // Whoever signed itself is the last one.
    if (next === undefined || next === at) return undefined;
    if (Date.parse(next.valid_to) < now_ms) return next;
  }
  return undefined;
}

/** Whether the client certificate of this machine is valid. */
export function ownFinding(pem: string, now_ms: number): Finding {
  const what = 'client certificate';
  try {
    const certificate = new X509Certificate(pem);
    const fault = validityWarning('it', certificate, now_ms);
    if (fault === undefined) return ok(what, texts.valid_until(certificate.validTo));
    const isOver = now_ms > Date.parse(certificate.validTo);
    const [finding = '', remedy = ''] = fault.split('; ');
    return isOver ? fail(what, finding, remedy) : warn(what, finding, remedy);
  } catch (error) {
    return fail(what, texts.certificate_unreadable(plain(messageOf(error))), texts.write_as_pem);
  }
}

/** Whether the certificate of the broker is valid, and for how long. */
export function validityFinding({ valid_to }: Pick<PeerCertificate, 'valid_to'>, now_ms: number): Finding {
  const to_ms = Date.parse(valid_to);
  const what = 'broker certificate';
  if (Number.isNaN(to_ms)) return warn(what, texts.no_expiry, texts.ask_broker_operator);
  const day = utcDay(valid_to);
  if (to_ms < now_ms) return fail(what, texts.expired_on(day), texts.renew_certificate);
  if (to_ms - now_ms < soon_ms) return warn(what, texts.expires_on(day), texts.renew_certificate_before);
  return ok(what, texts.valid_until_day(day));
}
