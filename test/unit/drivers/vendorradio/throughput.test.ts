/** Throughput from counters as radios write them: exact, or null, and never a part of it. */
import { describe, expect, it } from 'vitest';
import { throughput } from '../../../../drivers/vendorradio/assets/feeds.ts';
import {
  type LinkReading,
  type Reading,
  type Station,
  unknown_link,
  unknown_station,
} from '../../../../drivers/vendorradio/reading.ts';
import { stationsOf } from '../../../../drivers/vendorradio/ubus/iwinfo.ts';
import { linkStateOf } from '../../../../drivers/vendorradio/ubus-radio.ts';

const second_ms = 1_000;
const peer_lost_ms = 30_000;
const range = 2 ** 32;
const unknown_health = {
  uptime_s: null,
  cpu_pct: null,
  cpu_ticks: null,
  mem_pct: null,
  temperature_c: null,
  voltage: null,
};

interface About {
  readonly stations?: readonly Station[] | undefined;
  readonly link?: Partial<LinkReading>;
  readonly uptime_s?: number;
}

function reading(at_mono_ms: number, { stations, link = {}, uptime_s }: About): Reading {
  return {
    at_mono_ms,
    source: 'iwinfo',
    protocol: null,
    link: { ...unknown_link, ...link },
    stations,
    health: { ...unknown_health, uptime_s: uptime_s ?? null },
    position: null,
  };
}

/** Bits in a second, over so many seconds. */
function tx(before: About, now: About, seconds = 1): number | null {
  return throughput(reading(seconds * second_ms, now), reading(0, before), 'tx_bytes', peer_lost_ms);
}

const station = (last: string, more: Partial<Station>): Station => ({
  ...unknown_station,
  mac: `02:00:00:bb:00:${last}`,
  inactive_ms: 10,
  connected_s: 1_006,
  ...more,
});

/** As rpcd before mid-2021 writes a station. */
function listed(bytes: number | string) {
  const row = { mac: '02:00:00:BB:00:01', signal: -53, inactive: 10, connected_time: 1_006 };
  return stationsOf({ results: [{ ...row, rx: { bytes, rate: 72_200 }, tx: { bytes, rate: 72_200 } }] });
}

describe('a count of bytes of firmware before rpcd of mid-2021 (openwrt/luci#5189)', () => {
  it('above 2 GiB is a negative number, read as what it stands for', () => {
    expect(listed(-1_559_397_097)?.[0]).toMatchObject({ tx_bytes: range - 1_559_397_097 });
    expect(listed('-1')?.[0]).toMatchObject({ rx_bytes: range - 1 });
    expect(
      linkStateOf(
        JSON.stringify({ oper_freq: 2_452, sta_stats: [{ mac: '02:00:00:BB:00:01', tx_bytes: -2 }] }),
      )?.stations[0],
    ).toMatchObject({ tx_bytes: range - 2 });
  });

  it('below the range of 32 bits is unknown', () => {
    expect(listed(-(2 ** 31) - 1)?.[0]).toMatchObject({ tx_bytes: null });
  });

  it.each([
    ['grows below 2 GiB', 1_000, 2_001_000],
    ['passes 2 GiB', 2_147_000_000, -2_145_967_296],
    ['grows above 2 GiB', -1_559_397_097, -1_557_397_097],
    ['wraps to 0', -1_000_000, 1_000_000],
  ])('is exact where it %s', (_what, before, now) => {
    expect(tx({ stations: listed(before) }, { stations: listed(now) })).toBe(16_000_000);
  });

  it('that was reset is unknown, not a wrap at a rate that no radio has', () => {
    expect(tx({ stations: listed(2_000_000_000) }, { stations: listed(5_000) })).toBeNull();
  });
});

describe('the sum over the stations', () => {
  const a = { tx_bytes: 1_000_000 };
  const one = station('01', a);
  const grown = station('01', { tx_bytes: 2_000_000 });

  it('is that of all', () => {
    const before = [one, station('02', { tx_bytes: 4_294_000_000 })];
    const now = [grown, station('02', { tx_bytes: 4_294_000_000 + 1_000_000 - range })];
    expect(tx({ stations: before }, { stations: now })).toBe(16_000_000);
  });

  it.each([
    ['does not tell its bytes', [one, station('02', {})], [grown, station('02', {})]],
    ['tells them for the first time', [one, station('02', {})], [grown, station('02', a)]],
    ['was reset', [one, station('02', a)], [grown, station('02', { tx_bytes: 7 })]],
    [
      'connected again, and is beyond its former count already',
      [one, station('02', a)],
      [grown, station('02', { tx_bytes: 3_000_000, connected_s: 0 })],
    ],
    ['has left', [one, station('02', a)], [grown]],
    ['is new and does not tell since when', [one], [grown, station('02', { ...a, connected_s: null })]],
    ['was there before, unlisted', [one], [grown, station('02', a)]],
  ])('is unknown where one of them %s', (_what, before, now) => {
    expect(tx({ stations: before }, { stations: now })).toBeNull();
  });

  it('is unknown where a row of the list cannot be read', () => {
    const row = (tx_bytes: number) => ({ mac: '02:00:00:BB:00:01', tx_bytes, rssi: -60 });
    const state = (tx_bytes: number, ...more: readonly unknown[]) =>
      linkStateOf(JSON.stringify({ oper_freq: 2_452, sta_stats: [row(tx_bytes), ...more] }))?.stations;
    expect(tx({ stations: state(0) }, { stations: state(1_000_000) })).toBe(8_000_000);
    expect(tx({ stations: state(0) }, { stations: state(1_000_000, { mac: '?' }) })).toBeNull();
    const list = (bytes: number, ...more: readonly unknown[]) =>
      stationsOf({ results: [{ mac: '02:00:00:BB:00:01', tx: { bytes } }, ...more] });
    expect(tx({ stations: list(0) }, { stations: list(1_000_000) })).toBe(8_000_000);
    expect(tx({ stations: list(0) }, { stations: list(1_000_000, null) })).toBeNull();
  });

  it('holds all that a station sent which connected since', () => {
    const fresh = station('02', { tx_bytes: 500_000, connected_s: 0 });
    expect(tx({ stations: [one] }, { stations: [grown, fresh] })).toBe(12_000_000);
  });

  it('goes on without a station that had been silent for long: the kernel lists lost ones for minutes', () => {
    const lost = station('02', { ...a, inactive_ms: 200_000 });
    expect(tx({ stations: [one, lost] }, { stations: [grown] })).toBe(8_000_000);
  });

  it('goes on beside nodes that only the route to them is known of', () => {
    const behind = { ...unknown_station, mac: '02:00:00:bb:00:09', tq_pct: 80, hops: 'relay' as const };
    expect(tx({ stations: [one] }, { stations: [grown, behind] })).toBe(8_000_000);
    expect(tx({ stations: [one, behind] }, { stations: [grown] })).toBe(8_000_000);
  });

  it('is unknown without a list, before or now', () => {
    expect(tx({ stations: [one] }, {})).toBeNull();
    expect(tx({}, { stations: [one] })).toBeNull();
  });
});

describe('the counter of an interface', () => {
  const narrow = (tx_bytes: number | null) => ({ link: { tx_bytes, isNarrow: true } });

  it('of 32 bits is exact over its wrap (home-assistant/core#25886, influxdata/influxdb#5337)', () => {
    expect(tx(narrow(range - 1_000), narrow(999_000), 10)).toBe(800_000);
  });

  it('of 32 bits is unknown where it may have wrapped unseen between two readings far apart', () => {
    expect(tx(narrow(1_000), narrow(2_000), 30)).not.toBeNull();
    expect(tx(narrow(1_000), narrow(2_000), 40)).toBeNull();
  });

  it('of 64 bits is not: it may be read as rarely as one likes', () => {
    expect(tx({ link: { tx_bytes: 0 } }, { link: { tx_bytes: 60_000_000_000 } }, 300)).toBe(1_600_000_000);
  });

  it('after a restart of the radio is unknown, also where it looks like a wrap (nagios-plugins/nagios-plugins#410)', () => {
    const before = { ...narrow(range - 1_000), uptime_s: 86_400 };
    expect(tx(before, { ...narrow(500), uptime_s: 3 }, 10)).toBeNull();
  });

  it('is not replaced by a sum over stations when it was reset', () => {
    const stations = (tx_bytes: number) => [station('01', { tx_bytes })];
    const before = { link: { tx_bytes: 9_000_000_000 }, stations: stations(0) };
    expect(tx(before, { link: { tx_bytes: 10 }, stations: stations(10) })).toBeNull();
  });
});
