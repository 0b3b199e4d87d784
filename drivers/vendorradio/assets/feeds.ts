/** Builds feed messages from the current and the previous reading of a radio. Pure. */
import type { z } from 'zod';
import type { vendorradioFeeds } from '../../../src/contract/feeds.ts';
import { type Identity, type Reading, type Station, unknown_link } from '../reading.ts';

type Feeds = typeof vendorradioFeeds;
type Message<K extends keyof Feeds> = z.output<Feeds[K]>;

/** Facts about peers from other radios and the configuration. */
export interface PeerBook {
  readonly nameOf: (mac: string) => string | null;
  /** `asset_key` of the asset that a peer is. */
  readonly assetOf: (mac: string) => string | null;
  /** Signal that the peer measures, where it is a radio of this kit. */
  readonly remoteRssiOf: (mac: string) => number | null;
}

export interface Context {
  readonly identity: Identity;
  readonly reading: Reading;
  /** The previous reading of the same connection. */
  readonly before: Reading | undefined;
  readonly primary_peer: string | undefined;
  readonly peer_lost_ms: number;
  readonly neighbours_max: number;
  readonly book: PeerBook;
  /** UTC, of the poll. */
  readonly timestamp: string;
}

/** Whether a station was received within `lost_ms`: the kernel lists dead stations for minutes. A station without an age counts as received. */
export function isHeard({ inactive_ms }: Station, lost_ms: number): boolean {
  return inactive_ms === null || inactive_ms <= lost_ms;
}

/** The configured peer, else the strongest direct one. */
export function primaryOf({ reading, primary_peer, peer_lost_ms }: Context): Station | undefined {
  const heard = (reading.stations ?? []).filter((station) => isHeard(station, peer_lost_ms));
  if (primary_peer !== undefined) return heard.find(({ mac }) => mac === primary_peer);
  return heard
    .filter(({ hops, rssi }) => hops !== 'relay' && rssi !== null)
    .reduce<Station | undefined>(
      (best, each) => ((each.rssi ?? -Infinity) > (best?.rssi ?? -Infinity) ? each : best),
      undefined,
    );
}

export function radioMessage(context: Context, station: Station | undefined): Message<'radio'> {
  const { reading, book, timestamp, primary_peer } = context;
  // A radio without a station list still reports the signal of its link to its peer.
  const link = reading.stations === undefined && primary_peer === undefined ? reading.link : unknown_link;
  const rssi = station ? station.rssi : link.rssi;
  const noise = station?.noise ?? reading.link.noise;
  return {
    rssi,
    remote_rssi: station ? book.remoteRssiOf(station.mac) : link.remote_rssi,
    noise,
    rx_errors: station?.rx_errors ?? null,
    snr_db: difference(rssi, noise),
    peer: station?.mac ?? null,
    timestamp,
  };
}

export function linkMessage(context: Context): Message<'link'> {
  const { reading, before, timestamp, peer_lost_ms } = context;
  const { link, stations } = reading;
  const primary = primaryOf(context);
  return {
    mode: link.mode,
    ssid: link.ssid,
    channel: link.channel,
    freq_mhz: link.freq_mhz,
    bandwidth_mhz: link.bandwidth_mhz,
    txpower_dbm: link.txpower_dbm,
    noise: link.noise,
    quality_pct: link.quality_pct,
    busy_pct: link.busy_pct ?? busyPct(reading, before),
    tx_bps: throughput(reading, before, 'tx_bytes'),
    rx_bps: throughput(reading, before, 'rx_bytes'),
    tx_rate_bps: primary?.tx_rate_bps ?? link.tx_rate_bps,
    rx_rate_bps: primary?.rx_rate_bps ?? link.rx_rate_bps,
    peers: stations?.filter((station) => isHeard(station, peer_lost_ms)).length ?? null,
    timestamp,
  };
}

export function meshMessage({
  reading,
  book,
  neighbours_max,
  peer_lost_ms,
  timestamp,
}: Context): Message<'mesh'> | undefined {
  const { stations, protocol, link } = reading;
  if (!stations) return undefined;
  // Beyond the limit, the strongest received ones: dead stations keep their last signal.
  const weight = (station: Station): number =>
    (station.rssi ?? -200) - (isHeard(station, peer_lost_ms) ? 0 : 1_000);
  const told = stations.toSorted((a, b) => weight(b) - weight(a));
  const neighbours = told.slice(0, neighbours_max).map((station) => neighbourOf(station, link.noise, book));
  return { protocol, neighbours, truncated: stations.length > neighbours_max, timestamp };
}

/** A neighbour in the feed: without the counters, which `link` and `radio` use. */
function neighbourOf(
  { tx_bytes: _tx, rx_bytes: _rx, rx_errors: _errors, rssi_ant, ...rest }: Station,
  noise: number | null,
  book: PeerBook,
) {
  return {
    ...rest,
    name: book.nameOf(rest.mac),
    asset_key: book.assetOf(rest.mac),
    rssi_ant: rssi_ant === null ? null : [...rssi_ant],
    snr_db: difference(rest.rssi, rest.noise ?? noise),
  };
}

export function statusMessage({ identity, reading, before, timestamp }: Context): Message<'status'> {
  const { uptime_s, cpu_pct, mem_pct, temperature_c, voltage } = reading.health;
  const { hostname, firmware, serial } = identity;
  return {
    online: true,
    hostname,
    firmware,
    serial,
    uptime_s,
    cpu_pct: cpu_pct ?? cpuPct(reading, before),
    mem_pct,
    temperature_c,
    voltage,
    source: reading.source,
    timestamp,
  };
}

/** Status of an offline radio or peer: its identity only. */
export function offlineMessage(
  { hostname, firmware, serial }: Pick<Identity, 'hostname' | 'firmware' | 'serial'>,
  timestamp: string,
): Message<'status'> {
  return {
    online: false,
    hostname,
    firmware,
    serial,
    uptime_s: null,
    cpu_pct: null,
    mem_pct: null,
    temperature_c: null,
    voltage: null,
    source: null,
    timestamp,
  };
}

export function gpsMessage({ position }: Reading): Message<'gps'> | undefined {
  if (!position) return undefined;
  const { lat, lon, satellites_visible } = position;
  return { lat, lon, alt_m: null, fix_type: null, satellites_visible };
}

function difference(rssi: number | null, noise: number | null): number | null {
  return rssi === null || noise === null ? null : Math.round((rssi - noise) * 10) / 10;
}

/** The counters of the interface, else the sum over the stations that were there before too. */
export function throughput(
  now: Reading,
  before: Reading | undefined,
  counter: 'tx_bytes' | 'rx_bytes',
): number | null {
  if (!before) return null;
  const seconds = (now.at_mono_ms - before.at_mono_ms) / 1_000;
  if (seconds <= 0) return null;
  const whole = growth(now.link[counter], before.link[counter]);
  if (whole !== null) return Math.round((whole * 8) / seconds);
  const old = new Map(before.stations?.map((station) => [station.mac, station[counter]]));
  const grown = (now.stations ?? []).flatMap((station) => {
    const bytes = growth(station[counter], old.get(station.mac) ?? null);
    return bytes === null ? [] : [bytes];
  });
  if (grown.length === 0) return null;
  return Math.round((grown.reduce((sum, bytes) => sum + bytes, 0) * 8) / seconds);
}

/** Null when either is unknown, or when the counter was reset. */
function growth(now: number | null, before: number | null): number | null {
  return now === null || before === null || now < before ? null : now - before;
}

function busyPct({ link }: Reading, before: Reading | undefined): number | null {
  if (before?.link.freq_mhz !== link.freq_mhz) return null;
  const active_ms = growth(link.active_ms, before.link.active_ms);
  const busy_ms = growth(link.busy_ms, before.link.busy_ms);
  if (active_ms === null || active_ms === 0 || busy_ms === null) return null;
  return percent(busy_ms / active_ms);
}

function cpuPct({ health }: Reading, before: Reading | undefined): number | null {
  const now = health.cpu_ticks;
  const old = before?.health.cpu_ticks;
  if (!now || !old) return null;
  const all = growth(now.all, old.all);
  const idle = growth(now.idle, old.idle);
  return all === null || all === 0 || idle === null ? null : percent(1 - idle / all);
}

function percent(share: number): number {
  return Math.round(Math.min(1, Math.max(0, share)) * 1_000) / 10;
}
