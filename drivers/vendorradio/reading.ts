/** Result of one poll of a radio over any protocol. Unknown is null. */

const no_station_figures = {
  rssi: null,
  noise: null,
  tx_rate_bps: null,
  rx_rate_bps: null,
  mcs: null,
  tx_retries: null,
  tx_failed: null,
  rx_errors: null,
  loss_pct: null,
  inactive_ms: null,
  connected_s: null,
  tq_pct: null,
  /** Counters since the station connected; those of some firmware wrap at 2^32. */
  tx_bytes: null,
  rx_bytes: null,
};

type Figures<T> = Readonly<Record<keyof T, number | null>>;

export interface Station extends Figures<typeof no_station_figures> {
  /** Lower case with colons, as in everything that is published. */
  readonly mac: string;
  readonly rssi_ant: readonly (number | null)[] | null;
  readonly hops: 'direct' | 'relay' | null;
  readonly next_hop: string | null;
}

export const unknown_station: Omit<Station, 'mac'> = {
  ...no_station_figures,
  rssi_ant: null,
  hops: null,
  next_hop: null,
};

/** A station of a list with rows that cannot be read: a sum over them would be too low. */
export function uncounted(station: Station): Station {
  return { ...station, tx_bytes: null, rx_bytes: null };
}

const no_link_figures = {
  channel: null,
  freq_mhz: null,
  bandwidth_mhz: null,
  txpower_dbm: null,
  rssi: null,
  remote_rssi: null,
  noise: null,
  quality_pct: null,
  tx_rate_bps: null,
  rx_rate_bps: null,
  /** Share of the time, where the radio reports it. */
  busy_pct: null,
  /** Counters of the channel, milliseconds. */
  active_ms: null,
  busy_ms: null,
  /** Counters of the whole interface, where there are some. */
  tx_bytes: null,
  rx_bytes: null,
};

export interface LinkReading extends Figures<typeof no_link_figures> {
  readonly mode: string | null;
  readonly ssid: string | null;
  /** The counters have 32 bits, so that between two readings far apart they may have wrapped unseen. */
  readonly isNarrow: boolean;
}

export const unknown_link: LinkReading = { ...no_link_figures, mode: null, ssid: null, isNarrow: false };

export interface HealthReading {
  readonly uptime_s: number | null;
  readonly cpu_pct: number | null;
  /** Counters of processor time, in ticks. */
  readonly cpu_ticks: { readonly idle: number; readonly all: number } | null;
  readonly mem_pct: number | null;
  readonly temperature_c: number | null;
  readonly voltage: number | null;
}

export interface PositionReading {
  readonly lat: number;
  readonly lon: number;
  /** The radios do not report the reference, so no field with a reference holds it. */
  readonly satellites_visible: number | null;
}

export interface Reading {
  readonly at_mono_ms: number;
  readonly source: 'linkstate' | 'iwinfo' | 'snmp';
  readonly protocol: '80211s' | 'batman_iv' | 'batman_v' | 'none' | null;
  readonly link: LinkReading;
  /** Undefined: the radio did not report its stations in this poll. */
  readonly stations: readonly Station[] | undefined;
  readonly health: HealthReading;
  readonly position: PositionReading | null;
  /** What it refuses to report of its peers or itself, with its answer; undefined: nothing. */
  readonly gap?: string | undefined;
}

/** Identity of the radio; stable over restarts and changes of address. */
export interface Identity {
  /** Lower case with colons. */
  readonly mac: string;
  readonly hostname: string | null;
  readonly vendor: string | null;
  readonly model: string | null;
  readonly firmware: string | null;
  readonly serial: string | null;
}

export function assetKeyOf(mac: string): string {
  return `radio:${mac.replaceAll(':', '')}`;
}

/** Noise of 0 or -255 dBm, and a signal of 0, are placeholders of drivers for unknown. */
export function dbmOf(value: number | null | undefined): number | null {
  return value === null || value === undefined || value >= 0 || value <= -200 ? null : value;
}
