/** How to reach a broker and log in there: the options that kit, service and doctor share. */

/** Secrets and certificates are texts in memory, so that no part of the program reads a file for them. */
export interface BrokerOptions {
  /** `mqtt://host:port` or `mqtts://host:port`. */
  readonly url: string;
  /** Undefined: none is sent, as where a broker takes the name from the client certificate alone. */
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** PEM texts. With `ca`, no other authority is trusted; without, those of the system are. */
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  readonly protocol: 'auto' | ProtocolVersion;
  readonly keepalive_s: number;
  /** Bounds the TCP connection, TLS and CONNACK together, and each answer to a subscription. */
  readonly connect_timeout_ms: number;
}

export type ProtocolVersion = '5' | '3.1.1';
