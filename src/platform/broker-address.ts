/** What the address of a broker says: `mqtt://host:port`, `mqtts://`, and over WebSocket `ws://host:port/path`, `wss://`. */

const schemes: Readonly<
  Record<string, { readonly port: number; readonly tls: boolean; readonly websocket: boolean }>
> = {
  'mqtt:': { port: 1883, tls: false, websocket: false },
  'mqtts:': { port: 8883, tls: true, websocket: false },
  'ws:': { port: 80, tls: false, websocket: true },
  'wss:': { port: 443, tls: true, websocket: true },
};

type Scheme = Pick<URL, 'protocol'>;

export function isBrokerAddress({ protocol }: Scheme): boolean {
  return protocol in schemes;
}

export function isTls({ protocol }: Scheme): boolean {
  return schemes[protocol]?.tls === true;
}

export function isWebSocket({ protocol }: Scheme): boolean {
  return schemes[protocol]?.websocket === true;
}

export interface Place {
  /** A name or an address, without the brackets of IPv6. */
  readonly host: string;
  readonly port: number;
}

export function brokerPlace(url: Pick<URL, 'protocol' | 'hostname' | 'port'>): Place {
  const host = url.hostname.replace(/^\[(.*)\]$/u, '$1');
  return { host, port: Number(url.port) || (schemes[url.protocol]?.port ?? 0) };
}
