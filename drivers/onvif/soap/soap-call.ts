/** Types of one call of a camera: request and outcome. */
import type { DeviceName } from '../../../src/device/device-name.ts';
import type { OnRefused } from '../../../src/driver/refused-addresses.ts';
import type { XmlNode } from './xml.ts';

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
  /** `none`: as far as the specification allows it without a login. */
  readonly login: 'ws_security' | 'digest' | 'none';
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
  | { readonly kind: 'fault'; readonly code: string; readonly reason: string; readonly status: number }
  | Failure;

/** There was no usable answer. */
export interface Failure {
  readonly kind: 'failure';
  readonly why: FailureKind;
  readonly reason: string;
}

/** `stalled`: reading its reply took too long. `interrupted`: not caused by the camera. */
export type FailureKind =
  | 'unreachable'
  | 'deadline'
  | 'malformed'
  | 'certificate'
  | 'stalled'
  | 'interrupted';

/** What a reply was read as. */
export type Reading = { readonly kind: 'read'; readonly body: XmlNode } | Failure;

export function failure(why: FailureKind, reason: string): Failure {
  return { kind: 'failure', why, reason };
}
