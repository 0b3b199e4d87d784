/** What an endpoint and its medium share: the counts of frames, each delivered or dropped for a reason, calls and sentences. */

/** Why a frame was not forwarded. */
const drop_reasons = {
  /** From vehicles: no station is connected; the station does not read fast enough, or its public address may be forged. */
  no_peer: 0,
  slow: 0,
  public_peer: 0,
  /** Of an unknown message, and no vehicle that is received from there has its system id. */
  unknown: 0,
  /**
   * To vehicles: the endpoint or the driver is read-only; the vehicle is not forwarded here; its system is unknown.
   */
  read_only: 0,
  filtered: 0,
  no_vehicle: 0,
  /** It came back through a router or another endpoint; it has the ids of this kit; it would change the signing key. */
  looped: 0,
  own_ids: 0,
  blocked: 0,
  /** Above `to_vehicles_bytes_per_s`; the link to the vehicle accepts no frames; the endpoint has its maximum of stations. */
  rate: 0,
  link_refused: 0,
  refused_peer: 0,
  /** Datagrams that were not read: the station sends more than the event loop may handle in one turn. */
  flood: 0,
};
export type DropReason = keyof typeof drop_reasons;

export interface EndpointStats {
  readonly name: string;
  readonly up: boolean;
  /** Addresses of the stations. */
  readonly peers: readonly string[];
  /** Frames from vehicles, counted for each station. */
  readonly to_stations: number;
  readonly to_vehicles: number;
  /** Connections that were refused since the maximum was reached. */
  readonly refused_clients: number;
  readonly dropped: Readonly<Record<DropReason, number>>;
}

export class EndpointTally {
  readonly dropped = { ...drop_reasons };
  to_stations = 0;
  to_vehicles = 0;
  refused_clients = 0;

  drop(reason: DropReason): void {
    this.dropped[reason] += 1;
  }
}

/** Sends the bytes of one frame to every station, and counts it for each of them. */
export type Relay = (bytes: Uint8Array) => void;

/** The endpoint as its medium uses it. */
export interface EndpointHost {
  readonly signal: AbortSignal;
  readonly tally: EndpointTally;
  /** `own_ports`: from which stations receive. */
  opened(relay: Relay, own_ports: readonly number[]): void;
  closed(): void;
  joined(peer: string): void;
  left(peer: string, reason?: string): void;
  /** Counts a connection above the maximum. */
  refused(): void;
  /** Counts a datagram that was not parsed, since too much arrived at once. */
  overrun(): void;
  /** Parses a datagram; returns whether it contained a frame. Frames of a refused station are counted and not forwarded. */
  datagram(bytes: Uint8Array, peer: string, how: { readonly isRefused: boolean }): boolean;
  /** Opens a parser for the bytes of a connection, until `over` aborts. */
  stream(peer: string, over: AbortSignal): (chunk: Uint8Array) => void;
}

/** Sentences about endpoints that people read; tests refer to them by name. */
export const texts = {
  opened: 'endpoint opened',
  lost: 'endpoint lost; retrying',
  joined: 'station connected',
  left: 'station disconnected',
  full: 'endpoint has its maximum of stations; refusing others',
  own_ids: 'a station uses the ids of this kit; ignoring its frames, change its ids',
  own_link: 'a link receives from an endpoint of this driver; ignoring it, remove one of them',
  failed: (name: string, reason: string) => `${name}: ${reason}`,
  connect_timeout: (seconds: number) => `connection timed out after ${seconds} s`,
  closed_by_peer: 'connection closed by the other side',
  stalled: (seconds: number) => `the other side has accepted nothing for ${seconds} s`,
} as const;
