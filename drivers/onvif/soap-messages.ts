/** What the main thread and the thread that speaks SOAP say to each other. */
import type { XmlNode } from './xml.ts';

/** How one camera is reached and logged into. */
export interface Connection {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly secure: boolean;
  /** SHA-256 in lower-case hexadecimal; undefined: the system's authorities decide. */
  readonly fingerprint: string | undefined;
  readonly username: string | undefined;
  readonly password: string | undefined;
}

export interface SoapRequest {
  /** Where to; the device service when left out. */
  readonly url?: string;
  /** The operation as an element with its namespace. */
  readonly body: string;
  /** WS-Addressing action, which is also the SOAP action. */
  readonly action: string;
  /** Further SOAP headers, as XML. */
  readonly headers?: string;
  readonly deadline_ms: number;
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
      /** Our own address on the connection. */
      readonly local_address: string | undefined;
    }
  /** The device answered that it will not. `code`: the innermost subcode without prefix, such as NotAuthorized. */
  | { readonly kind: 'fault'; readonly code: string; readonly reason: string; readonly status: number }
  /** There was no usable answer. */
  | { readonly kind: 'failure'; readonly why: FailureKind; readonly reason: string };

export type FailureKind =
  | 'unreachable'
  | 'deadline'
  | 'malformed'
  | 'certificate'
  | 'stalled'
  | 'interrupted';

export type ToThread =
  | { readonly kind: 'open'; readonly camera: number; readonly connection: Connection }
  | { readonly kind: 'close'; readonly camera: number }
  | { readonly kind: 'call'; readonly id: number; readonly camera: number; readonly request: SoapRequest }
  | { readonly kind: 'parse'; readonly id: number; readonly camera: number; readonly xml: string };

export interface FromThread {
  readonly id: number;
  readonly outcome: SoapOutcome;
}

/** Cells of the memory that both threads share: whose reply is being read, and how many have been read. */
export const cell_camera = 0;
export const cell_count = 1;
export const cells = 2;
