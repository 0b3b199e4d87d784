/** Counts the frames of one endpoint. Each frame is delivered, or dropped for one of the reasons. */

/** Why a frame was not forwarded. */
export const drop_reasons = {
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
