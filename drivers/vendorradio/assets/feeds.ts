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
    tx_bps: throughput(reading, before, 'tx_bytes', peer_lost_ms),
    rx_bps: throughput(reading, before, 'rx_bytes', peer_lost_ms),
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
  return {
    ...offlineMessage(identity, timestamp),
    online: true,
    uptime_s,
    cpu_pct: cpu_pct ?? cpuPct(reading, before),
    mem_pct,
    temperature_c,
    voltage,
    source: reading.source,
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

/** No radio moves more; a counter of 32 bits can be followed up to this rate for half a minute. */
const bytes_per_s_max = 125_000_000;
const narrow_range = 2 ** 32;

/**
 * From the counters of the interface, else from the sum over the stations. Null rather than a part of it: when one station
 * cannot be counted, the sum is unknown.
 */
export function throughput(
  now: Reading,
  before: Reading | undefined,
  counter: 'tx_bytes' | 'rx_bytes',
  peer_lost_ms: number,
): number | null {
  if (!before || hasFallen(now.health.uptime_s, before.health.uptime_s)) return null;
  const seconds = (now.at_mono_ms - before.at_mono_ms) / 1_000;
  if (seconds <= 0) return null;
  const span = { counter, seconds, peer_lost_ms };
  const bytes =
    now.link[counter] === null
      ? stationBytes(now.stations, before.stations, span)
      : linkBytes(now, before, span);
  return bytes === null ? null : Math.round((bytes * 8) / seconds);
}

interface Span {
  readonly counter: 'tx_bytes' | 'rx_bytes';
  readonly seconds: number;
  readonly peer_lost_ms: number;
}

function linkBytes(now: Reading, before: Reading, { counter, seconds }: Span): number | null {
  const mayHaveWrapped = bytes_per_s_max * seconds >= narrow_range;
  if ((now.link.isNarrow || before.link.isNarrow) && mayHaveWrapped) return null;
  return bytesSince(now.link[counter], before.link[counter], seconds);
}

function stationBytes(now: Reading['stations'], before: Reading['stations'], span: Span): number | null {
  const listed = now?.filter(isNeighbour) ?? [];
  const old = new Map(before?.filter(isNeighbour).map((station) => [station.mac, station]));
  const macs = new Set(listed.map(({ mac }) => mac));
  const hasLeft = [...old.values()].some((each) => !macs.has(each.mac) && isHeard(each, span.peer_lost_ms));
  if (!before || listed.length === 0 || hasLeft) return null;
  const bytes = listed.map((station) => bytesOf(station, old.get(station.mac), span));
  return bytes.reduce<number | null>((sum, each) => (sum === null || each === null ? null : sum + each), 0);
}

/** Of one station since the reading before; all that it has counted where it connected since. */
function bytesOf(now: Station, before: Station | undefined, { counter, seconds }: Span): number | null {
  if (before) {
    const isAnother = hasFallen(now.connected_s, before.connected_s);
    return isAnother ? null : bytesSince(now[counter], before[counter], seconds);
  }
  return now.connected_s !== null && now.connected_s <= seconds ? now[counter] : null;
}

/** Of its own stations a radio knows more than the route; nodes behind them have no counters. */
function isNeighbour({ tq_pct, rssi, tx_bytes, rx_bytes }: Station): boolean {
  return tq_pct === null || rssi !== null || tx_bytes !== null || rx_bytes !== null;
}

/** Null when either is unknown, or when the counter was reset. One of 32 bits that wrapped has grown by no more than a radio moves. */
function bytesSince(now: number | null, before: number | null, seconds: number): number | null {
  if (now === null || before === null || now >= before) return growth(now, before);
  const wrapped = now - before + narrow_range;
  return before < narrow_range && wrapped <= bytes_per_s_max * seconds ? wrapped : null;
}

function hasFallen(now: number | null, before: number | null): boolean {
  return now !== null && before !== null && now < before;
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
