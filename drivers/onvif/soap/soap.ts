/** Calls of a camera: how it is reached, the operations of its services, their outcomes, and the errors for cameras that fail them. */
import { deviceAddress } from '../../../src/toolkit/driver/device-address.ts';
import { LoginRefused } from '../../../src/toolkit/device/login-guard.ts';
import { DeviceRejected, DeviceUnreachable } from '../../../src/platform/errors.ts';
import type { DeviceName } from '../../../src/toolkit/device/device-name.ts';
import type { OnRefused } from '../../../src/toolkit/driver/refused-addresses.ts';
import type { Answered } from './transport.ts';
import type { XmlNode } from './xml.ts';
import { texts } from '../texts.ts';

export const namespaces = {
  device: 'http://www.onvif.org/ver10/device/wsdl',
  media: 'http://www.onvif.org/ver10/media/wsdl',
  media2: 'http://www.onvif.org/ver20/media/wsdl',
  ptz: 'http://www.onvif.org/ver20/ptz/wsdl',
  events: 'http://www.onvif.org/ver10/events/wsdl',
  deviceio: 'http://www.onvif.org/ver10/deviceIO/wsdl',
} as const;
export type ServiceName = keyof typeof namespaces;
export const schema_namespace = 'http://www.onvif.org/ver10/schema';

/** Most cameras answer within 100 ms; seconds when they write to flash or wake up. */
export const call_deadline_ms = 8_000;

/** How one camera is reached and logged into. */
export interface Connection {
  readonly host: string;
  /** Of `host`; left out, the resolver of the operating system. */
  readonly name?: Pick<DeviceName, 'lookup' | 'reached'>;
  readonly port: number;
  readonly path: string;
  readonly secure: boolean;
  /** SHA-256 in lower-case hexadecimal; undefined: the system's authorities decide. */
  readonly fingerprint: string | undefined;
  /** TLS 1.0 and 1.1 are accepted too. */
  readonly legacy_tls?: boolean;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** Although `secure`, the login of a stream may go over plain RTSP. */
  readonly allow_plain_rtsp?: boolean;
  /** Of its streams, whatever it reports. */
  readonly rtsp_port?: number | undefined;
  /** Other cameras are reached at the same host. */
  readonly is_host_shared?: boolean;
  /** IP address of the camera, once it has answered. */
  readonly peer_address?: string | undefined;
  /** The camera reported an address that is not used, and why. */
  readonly onRefused?: OnRefused;
}

export interface SoapRequest {
  /** Where to; the device service when left out. */
  readonly url?: string;
  /** The operation as an element with its namespace. */
  readonly body: string;
  /** WS-Addressing action, which is also the SOAP action. */
  readonly action: string;
  /** Additional SOAP headers, as XML. */
  readonly headers?: string;
  /**
   * `ws_security` is stamped with the clock of the camera, `gateway_clock` with ours; `digest` is the login of HTTP alone; `none`: as far as
   * the specification allows it without a login.
   */
  readonly login: 'ws_security' | 'gateway_clock' | 'digest' | 'none';
  /** The raw text of the reply is wanted as well. */
  readonly raw?: boolean;
}

export type SoapOutcome =
  | {
      readonly kind: 'reply';
      /** The SOAP body. */
      readonly body: XmlNode;
      readonly xml?: string;
      /** Address of the gateway on the connection. */
      readonly local_address: string | undefined;
    }
  /** The device answered with a fault. `code`: the innermost subcode without prefix, such as NotAuthorized. */
  | {
      readonly kind: 'fault';
      readonly code: string;
      readonly reason: string;
      readonly status: number;
      /** Of a refused login. */
      readonly signs?: LoginSigns;
    }
  | Failure;

/** What a camera has shown about the logins that it refused. */
export interface LoginSigns {
  /** How far its clock is ahead of the gateway's. */
  readonly clock_ahead_ms: number;
  /** It refused a login of HTTP, which depends on no clock. */
  readonly isHttpRefused: boolean;
  /** It offers HTTP Basic alone, and the connection has no TLS. */
  readonly isBasicAlone: boolean;
}

/** There was no usable answer. */
export interface Failure {
  readonly kind: 'failure';
  readonly why: FailureKind;
  readonly reason: string;
}

/** `interrupted`: not caused by the camera. */
export type FailureKind = 'unreachable' | 'deadline' | 'malformed' | 'certificate' | 'interrupted';

/** What a reply was read as. */
export type Reading = { readonly kind: 'read'; readonly body: XmlNode } | Failure;

export function failure(why: FailureKind, reason: string): Failure {
  return { kind: 'failure', why, reason };
}

export type Login = SoapRequest['login'];
export type Reply = Extract<SoapOutcome, { kind: 'reply' }>;
export type Fault = Extract<SoapOutcome, { kind: 'fault' }>;

/** An operation without its login. */
export interface Operation extends Omit<SoapRequest, 'login'> {
  readonly deadline_ms?: number;
  /** Aborts when the answer is not wanted any more: its connection is free for another request then. */
  readonly signal?: AbortSignal;
}

export interface FetchLimits {
  readonly deadline_ms: number;
  readonly bytes_max: number;
}

/** The line to one camera. Failures are outcomes: no call rejects. */
export interface Soap {
  readonly connection: Connection;
  /** Login method, determined at connection. */
  login: Login;
  call(operation: Operation): Promise<SoapOutcome>;
  /** Fetches a file of the camera; `url` is one of `reachable`. */
  fetch(url: string, limits: FetchLimits): Promise<Answered | Failure>;
  /** Ends the calls under way; they and all later ones are interrupted. */
  close(): void;
}

/** An operation of a service: `inner` is XML in the service's namespace. */
export function operation(service: ServiceName, name: string, inner = ''): Operation {
  const namespace = namespaces[service];
  return { body: `<${name} xmlns="${namespace}">${inner}</${name}>`, action: `${namespace}/${name}` };
}

/** Returns the reply, or throws the error that decides how the connection is retried. */
export function expectReply(outcome: SoapOutcome, what: string): Reply {
  if (outcome.kind === 'reply') return outcome;
  // What fails before any request is no fault of this one.
  const isConnection = outcome.kind === 'failure' && outcome.why === 'unreachable';
  const sentence = isConnection ? describe(outcome) : `${what}: ${describe(outcome)}`;
  if (isRefusedLogin(outcome)) throw new LoginRefused(sentence);
  if (outcome.kind === 'failure' && outcome.why === 'certificate') throw new DeviceRejected(sentence);
  throw new DeviceUnreachable(sentence);
}

export function isRefusedLogin(outcome: SoapOutcome): outcome is Fault & { readonly code: 'NotAuthorized' } {
  return outcome.kind === 'fault' && outcome.code === 'NotAuthorized';
}

/** What went wrong, as part of a sentence. */
export function describe(outcome: Exclude<SoapOutcome, { kind: 'reply' }>): string {
  if (outcome.kind === 'failure') return outcome.reason;
  if (outcome.code === 'NotAuthorized') {
    const words = outcome.reason === '' ? '' : ` (${outcome.reason})`;
    return texts.rights_rejected(words);
  }
  const code = outcome.code.startsWith('HTTP') ? '' : outcome.code;
  return texts.request_refused([code, outcome.reason].filter(Boolean).join(': '));
}

/**
 * Where a service is reached: on the configured host, whatever the camera reports. Undefined, and reported, when what it
 * reports is no address of a camera at all: a login is never sent there.
 */
export function reachable(
  address: string,
  { host, port, secure, peer_address, onRefused }: Connection,
): string | undefined {
  const own = { scheme: secure ? 'https' : 'http', host, port, ports: 'same_host', peer_address } as const;
  const found = deviceAddress(address, own);
  if ('url' in found) return found.url;
  onRefused?.(address, found.refused);
  return undefined;
}
