/** How to reach a broker and log in there: the options that kit, service and doctor share. */
import type { Proxy } from '../platform/proxy.ts';

/** Secrets and certificates are texts in memory, so that no part of the program reads a file for them. */
export interface BrokerOptions {
  /** `mqtt://host:port`, `mqtts://host:port`, or over WebSocket `ws://host:port/path`, `wss://host:port/path`. */
  readonly url: string;
  /** Undefined: none is sent, as where a broker takes the name from the client certificate alone. */
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** PEM texts. With `ca`, no other authority is trusted; without, those of the system are. */
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  /** What is between this machine and the broker; null: nothing; left out: what the environment names. */
  readonly proxy?: Proxy | null | undefined;
  /** Protocols of ALPN (RFC 7301), for servers that choose what they speak on a port by it; left out: none. */
  readonly alpn?: readonly string[] | undefined;
  /** The name that TLS asks for and that the certificate must have; left out: the host of `url`. */
  readonly tls_name?: string | undefined;
  /** Of the request that becomes a WebSocket. */
  readonly websocket?:
    | { readonly subprotocol: string; readonly headers: Readonly<Record<string, string>> }
    | undefined;
  readonly protocol: 'auto' | ProtocolVersion;
  readonly keepalive_s: number;
  /** Bounds the TCP connection, TLS and CONNACK together, and each answer to a subscription. */
  readonly connect_timeout_ms: number;
}

export type ProtocolVersion = '5' | '3.1.1';
