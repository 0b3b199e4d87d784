import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { meshMessage } from '../../../../drivers/vendorradio/assets/feeds.ts';
import { isMatch, readGrants } from '../../../../drivers/vendorradio/ubus/ubus.ts';
import {
  boardReply,
  channelsOf,
  fileText,
  healthOf,
  infoOf,
  linkOf,
  powersOf,
  stationsOf,
  surveyOf,
  ticksOf,
} from '../../../../drivers/vendorradio/ubus/iwinfo.ts';
import { linkStateOf, positionOf, sensorsOf } from '../../../../drivers/vendorradio/ubus-radio.ts';
import { counter, figure } from '../../../../drivers/vendorradio/ubus/loose.ts';
import { unknown_link, unknown_station } from '../../../../drivers/vendorradio/reading.ts';
import { vendorradioFeeds } from '../../../../src/contract/feeds.ts';
import { forAll } from '../../../support/for-all.ts';

/** What a radio may write instead of a value. */
const junk = fc.oneof(
  fc.jsonValue(),
  fc.double(),
  fc.constantFrom('', ' ', '-1', '1e400', 'NaN', '0x10', null, undefined, -255, 0, -0, Infinity),
);
const junkRow = (keys: readonly string[]) =>
  fc.record(Object.fromEntries(keys.map((key) => [key, junk])), { requiredKeys: [] });
const mac = fc
  .array(fc.integer({ min: 0, max: 255 }), { minLength: 6, maxLength: 6 })
  .map((bytes) => bytes.map((byte) => byte.toString(16).padStart(2, '0').toUpperCase()).join(':'));

const rate_keys = ['rate', 'mcs', 'bytes', 'drop_misc', 'failed', 'retries', 'ht'];
const stationRow = fc.record(
  {
    mac: fc.oneof(mac, junk),
    signal: junk,
    signal_avg: junk,
    noise: junk,
    inactive: junk,
    connected_time: junk,
    rx: fc.oneof(junkRow(rate_keys), junk),
    tx: fc.oneof(junkRow(rate_keys), junk),
  },
  { requiredKeys: [] },
);
const health = {
  uptime_s: null,
  cpu_pct: null,
  cpu_ticks: null,
  mem_pct: null,
  temperature_c: null,
  voltage: null,
};
const identity = { mac: '', hostname: null, vendor: null, model: null, firmware: null, serial: null };

/** The feed of a radio that tells these stations. */
function meshOf(stations: ReturnType<typeof stationsOf>) {
  return meshMessage({
    identity,
    reading: {
      at_mono_ms: 0,
      source: 'iwinfo',
      protocol: '80211s',
      link: unknown_link,
      stations,
      health,
      position: null,
    },
    before: undefined,
    primary_peer: undefined,
    peer_lost_ms: 30_000,
    neighbours_max: 64,
    book: { nameOf: () => null, assetOf: () => null, remoteRssiOf: () => null },
    timestamp: '2026-01-02T03:04:05.678Z',
  });
}

describe('a figure', () => {
  it('is finite or null, whatever is written', () => {
    forAll(junk, (raw) => {
      const read = figure.parse(raw);
      expect(read === null || Number.isFinite(read)).toBe(true);
      const counted = counter.parse(raw);
      expect(counted === null || (Number.isSafeInteger(counted) && counted >= 0)).toBe(true);
    });
  });

  it('is the same as a number and as a text', () => {
    forAll(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
      expect(figure.parse(` ${value} `)).toBeCloseTo(value, 10);
      expect(figure.parse(value)).toBe(value);
    });
  });
});

describe('a list of stations', () => {
  it('keeps the contract of the feed, whatever the rows hold, and a bad row costs only itself', () => {
    forAll(fc.array(stationRow, { maxLength: 8 }), mac, (rows, good) => {
      const stations = stationsOf({ results: [...rows, { mac: good, signal: -60, inactive: 1 }] });
      expect(stations?.at(-1)).toMatchObject({ mac: good.toLowerCase(), rssi: -60, inactive_ms: 1 });
      for (const { rssi, noise } of stations ?? []) {
        for (const dbm of [rssi, noise]) expect(dbm === null || (dbm < 0 && dbm > -200)).toBe(true);
      }
      const message = meshOf(stations);
      expect(vendorradioFeeds.mesh.safeParse(message).error).toBeUndefined();
    });
  });

  it('with a rate beyond all numbers reports none', () => {
    const [station] = stationsOf({ results: [{ mac: '02:00:00:AA:BB:01', rx: { rate: 1e306 } }] }) ?? [];
    expect(station).toMatchObject({ rx_rate_bps: null });
  });

  it('is unknown, not empty, when it is none', () => {
    expect(stationsOf({ results: [] })).toEqual([]);
    for (const body of [undefined, null, {}, { results: {} }, 'x', []])
      expect(stationsOf(body)).toBeUndefined();
  });

  it('names present stations before absent ones with a better signal when it is too long', () => {
    const row = (at: number, rssi: number, inactive_ms: number) => ({
      ...unknown_station,
      mac: `02:00:00:00:00:${at.toString(16).padStart(2, '0')}`,
      rssi,
      inactive_ms,
    });
    const dead = Array.from({ length: 64 }, (_none, at) => row(at, -40, 200_000));
    const living = [row(100, -90, 10), row(101, -80, 10)];
    const { neighbours = [], truncated } = meshOf([...dead, ...living]) ?? {};
    expect(truncated).toBe(true);
    expect(neighbours.slice(0, 3).map(({ rssi }) => rssi)).toEqual([-80, -90, -40]);
  });
});

describe('what a radio reports about itself', () => {
  const keys = ['mode', 'ssid', 'bssid', 'channel', 'frequency', 'txpower', 'signal', 'noise', 'quality'];
  const infoBody = fc.oneof(junkRow([...keys, 'quality_max', 'htmode', 'htmodelist', 'hardware']), junk);

  it('keeps the bounds of the link, whatever is written', () => {
    forAll(infoBody, (body) => {
      const info = infoOf(body);
      if (!info) return;
      const { freq_mhz, quality_pct, channel, noise } = linkOf(info);
      expect(freq_mhz === null || freq_mhz > 0).toBe(true);
      expect(quality_pct === null || (quality_pct >= 0 && quality_pct <= 100)).toBe(true);
      expect(channel === null || Number.isInteger(channel)).toBe(true);
      expect(noise === null || noise < 0).toBe(true);
    });
  });

  it('never throws over a health, a survey, a file or a list', () => {
    forAll(junk, junk, (body, row) => {
      const { uptime_s, mem_pct } = healthOf(body);
      expect(uptime_s === null || uptime_s >= 0).toBe(true);
      expect(mem_pct === null || (mem_pct >= 0 && mem_pct <= 100)).toBe(true);
      for (const list of [body, { results: body }, { results: [row, body] }]) {
        expect(surveyOf(list, 5_180).noise ?? -1).toBeLessThan(0);
        expect(powersOf(list).every((dbm) => Number.isFinite(dbm))).toBe(true);
        expect(channelsOf(list, 5_180).every(({ mhz }) => mhz >= 4_900)).toBe(true);
      }
      expect(fileText(body) ?? '').toBeTypeOf('string');
      expect(ticksOf(typeof body === 'string' ? `cpu ${body}` : undefined)?.all ?? 0).not.toBeNaN();
    });
  });

  it('reads no further in /proc/stat than its first line can be long', () => {
    expect(ticksOf('cpu  10 0 5 80 5 0 0 0 0 0\ncpu0 1 1 1 1 1')).toEqual({ idle: 85, all: 100 });
    expect(ticksOf(`cpu ${'1 '.repeat(900_000)}`)?.all).toBeLessThan(1_000);
  });

  it('names a board also where it leaves everything out', () => {
    expect(boardReply.parse({})).toMatchObject({
      hostname: null,
      sub_model: null,
      release: { version: null },
    });
  });

  it.each([
    [undefined, true],
    [false, true],
    [0, true],
    ['0', true],
    [true, false],
    [1, false],
    ['1', false],
    ['true', false],
    [null, false],
  ])('reports whether a channel may be used whose `restricted` is %j: %j', (restricted, isOffered) => {
    const body = { results: [{ channel: 52, mhz: 5_260, restricted }] };
    expect(channelsOf(body, 5_180).length === 1).toBe(isOffered);
  });
});

describe('files of Mesh Rider firmware', () => {
  const state = fc.record(
    { oper_chan: junk, oper_freq: junk, chan_width: junk, noise: junk, activity: junk },
    { requiredKeys: [] },
  );
  const row = junkRow(['mac', 'rssi', 'rssi_ant', 'mcs', 'pl_ratio', 'tx_bytes', 'inactive']);
  const node = junkRow(['orig_address', 'tq', 'hop_status', 'last_seen_msecs']);

  it('keep the contract of the feed, whatever they hold', () => {
    forAll(state, fc.array(row), fc.array(node), mac, (about, sta_stats, mesh_stats, good) => {
      const stations = [...sta_stats, { mac: good, rssi: '-50', tx_bytes: '7' }];
      const nodes = [...mesh_stats, { orig_address: good.toLowerCase(), tq: '255', hop_status: 'direct' }];
      const file = JSON.stringify({ linkstate: { ...about, sta_stats: stations, mesh_stats: nodes } });
      const read = linkStateOf(file);
      expect(read?.stations.find((each) => each.mac === good.toLowerCase())).toMatchObject({
        rssi: -50,
        tq_pct: 100,
        hops: 'direct',
      });
      expect(vendorradioFeeds.mesh.safeParse(meshOf(read?.stations)).error).toBeUndefined();
      expect(read?.freq_mhz ?? 1).toBeGreaterThan(0);
      // Written while it was read.
      expect(linkStateOf(file.slice(0, -1))).toBeUndefined();
    });
  });

  it('of sensors and of a position are a figure in its bounds, or unknown', () => {
    forAll(fc.string(), fc.string(), junk, (one, other, value) => {
      const sensors = sensorsOf(JSON.stringify({ Temperature: value, 'VIN VOLTAGE': value }));
      expect(sensors.voltage === null || Number.isFinite(sensors.voltage)).toBe(true);
      expect(sensorsOf(one).temperature_c ?? 0).not.toBeNaN();
      const { lat, lon } = positionOf(one, other) ?? { lat: 0, lon: 0 };
      expect(Math.abs(lat) <= 90 && Math.abs(lon) <= 180).toBe(true);
    });
    expect(positionOf('0.0\n', '0.0\n')).toBeNull();
    expect(positionOf('91', '8')).toBeNull();
    expect(positionOf('47.39\n', undefined)).toBeNull();
  });
});

it('rights are read from any reply without a throw, and nothing is allowed that is not named', () => {
  forAll(junk, (raw) => {
    const grants = readGrants(raw);
    expect(grants.isEmpty && grants.mayCall({ object: 'system', method: 'reboot' })).toBe(false);
    const only = readGrants({ ubus: { 'sys*': ['in?o'] }, file: raw, uci: raw });
    expect(only.mayCall({ object: 'system', method: 'info' })).toBe(true);
    expect(only.mayCall({ object: 'system', method: 'reboot' })).toBe(false);
    expect(only.mayFile('/etc/shadow', 'read')).toBe(false);
  });
});

describe('patterns of rights', () => {
  it.each([
    ['network.*', 'network.wireless', true],
    ['*', '', true],
    ['', '', true],
    ['', 'a', false],
    ['a?c', 'abc', true],
    ['a?c', 'ac', false],
    ['?', '/', true],
    ['/proc/*', '/proc/net/arp', true],
    ['*a*b', 'aabab', true],
    ['*a*b', 'aaba', false],
    ['***', 'a', true],
    ['a.c', 'abc', false],
    ['[a]', 'a', false],
  ])('%j of %j: %j', (pattern, name, does) => {
    expect(isMatch(pattern, name)).toBe(does);
  });

  it('are compared as an expression would, without its time for many stars', () => {
    const parts = fc.array(fc.constantFrom('a', 'b', '*', '?'), { maxLength: 6 });
    forAll(parts, fc.array(fc.constantFrom('a', 'b'), { maxLength: 8 }), (some, letters) => {
      const [pattern, name] = [some.join(''), letters.join('')];
      const source = pattern.replaceAll('*', '.*').replaceAll('?', '.');
      expect(isMatch(pattern, name)).toBe(new RegExp(`^${source}$`, 'u').test(name));
    });
    // As an expression, 14 stars took 1.8 s and each further one twice that of the one before.
    const stars = `${'*'.repeat(40)}!`;
    const { mayCall } = readGrants({ ubus: { [stars]: ['*'], 'network.*': [stars] } });
    expect(mayCall({ object: 'network.wireless', method: 'status' })).toBe(false);
  });

  it('count up to a number and a length that no radio has', () => {
    const junk = Array.from({ length: 5_000 }, (_, at) => `x${at}`);
    const status = { object: 'system', method: 'info' };
    expect(readGrants({ ubus: { other: junk, system: ['info'] } }).mayCall(status)).toBe(false);
    expect(readGrants({ ubus: { other: junk.slice(0, 2_000), system: ['info'] } }).mayCall(status)).toBe(
      true,
    );
    expect(readGrants({ ubus: { [`system${'*'.repeat(60)}`]: ['info'] } }).mayCall(status)).toBe(false);
  });
});

describe('keys that firmware leaves out', () => {
  it('of a channel mean that nothing restricts it', () => {
    expect(channelsOf({ results: [{ channel: 36, mhz: 5_180 }] }, 5_180)).toEqual([
      { channel: 36, mhz: 5_180 },
    ]);
  });

  it.each(['sta_stats', 'mesh_stats'])('of a link state do not hide the rest: %s', (key) => {
    const all = { oper_freq: 5_180, sta_stats: [], mesh_stats: [] };
    const { [key as keyof typeof all]: _, ...left } = all;
    expect(linkStateOf(JSON.stringify(left))?.freq_mhz).toBe(5_180);
  });
});
