import { afterEach, describe, expect, it } from 'vitest';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { full_acls } from '../../../../drivers/vendorradio/sim/sim-radio.ts';
import { FakeRadio } from '../../../fakes/fake-radio.ts';
import { driverConformance } from '../../../support/drivers/driver-conformance.ts';
import { eventually } from '../../../support/eventually.ts';
import { makeDirectory } from '../../../support/temporary.ts';
import {
  selfSignedRadio,
  type VendorradioLab,
  vendorradioLab,
  servedRadio,
} from '../../../support/drivers/vendorradio-lab.ts';

let lab: VendorradioLab;
afterEach(async () => lab.stop());

describe('conformance', async () => {
  lab = await vendorradioLab();
  const conforming = lab;
  driverConformance({
    driver: conforming.driver,
    options: () => conforming.options({ identify_led: 'green:status' }),
    peer: {
      start: async () => conforming.radio.start(),
      lose: async () => conforming.radio.lose(),
      restore: async () => conforming.radio.start(),
      stop: async () => conforming.radio.lose(),
    },
  });
});

describe('a radio with OpenWrt', () => {
  it('is an asset by its MAC address, with its feeds', async () => {
    lab = await servedRadio();
    expect(lab.announced()).toMatchObject({
      asset_key: 'radio:020000aabb01',
      type: 'radio',
      protocol: 'vendorradio',
      model: 'Wi-Fi board',
      firmware: 'OpenWrt 24.10.0',
      parent_id: null,
    });
    expect(await lab.newest('radio', ({ rssi }) => rssi === -61)).toMatchObject({
      remote_rssi: null,
      noise: -95,
      rx_errors: 3,
      snr_db: 34,
      peer: '02:00:00:aa:bb:02',
    });
    expect(await lab.newest('link', () => true)).toMatchObject({
      mode: 'Mesh Point',
      channel: 36,
      freq_mhz: 5180,
      bandwidth_mhz: 20,
      txpower_dbm: 20,
      quality_pct: 70,
      busy_pct: null,
      tx_rate_bps: 72_200_000,
      rx_rate_bps: 65_000_000,
      peers: 1,
    });
    expect(await lab.newest('mesh', () => true)).toMatchObject({
      protocol: '80211s',
      truncated: false,
      neighbours: [{ mac: '02:00:00:aa:bb:02', mcs: 7, tx_retries: 12, connected_s: null }],
    });
    expect(await lab.newest('status', () => true)).toMatchObject({
      online: true,
      hostname: 'mast',
      uptime_s: 5_000,
      mem_pct: 40,
      temperature_c: null,
      source: 'iwinfo',
    });
    expect(lab.feed('gps')).toEqual([]);
  });

  it('is asked one request at a time under one session', async () => {
    lab = await servedRadio();
    await eventually('it was polled ten times', () => lab.feed('link').length > 10);
    expect(lab.radio).toMatchObject({ sessions: { logins: 1 }, busiest: 1, connections: 1 });
  });

  it('reports its throughput from what its counters have grown', async () => {
    lab = await vendorradioLab();
    lab.start();
    await lab.newest('link', ({ tx_bps }) => tx_bps === 0);
    lab.radio.wifi.stations[0]!.tx = { bytes: 1_000_000, rate: 72_200 };
    expect((await lab.newest('link', ({ tx_bps }) => Number(tx_bps) > 0))['rx_bps']).toBe(0);
    lab.radio.wifi.stations[0]!.tx = { bytes: 5, rate: 72_200 };
    await lab.newest('link', ({ tx_bps }) => tx_bps === null);
  });

  it('counts a station that lingers as away by its inactive time', async () => {
    lab = await vendorradioLab();
    lab.radio.wifi.stations[0]!.inactive = 31_000;
    lab.start();
    expect(await lab.newest('link', () => true)).toMatchObject({ peers: 0 });
    expect(await lab.newest('radio', () => true)).toMatchObject({ rssi: null, peer: null });
  });

  it('takes noise of 0 and stations without rates or with texts for numbers as they are: unknown', async () => {
    lab = await vendorradioLab();
    lab.radio.wifi.noise = 0;
    lab.radio.wifi.stations = [
      { mac: '02:00:00:AA:BB:03', signal: '-70' as unknown as number, noise: -255, inactive: 5 },
      { mac: 'nonsense', inactive: 0 },
    ];
    lab.start();
    expect(await lab.newest('mesh', () => true)).toMatchObject({
      neighbours: [{ rssi: -70, noise: null, snr_db: null, tx_rate_bps: null, mcs: null }],
    });
  });

  it('reports at most 64 of 300 neighbours, the strongest', async () => {
    lab = await vendorradioLab();
    lab.radio.wifi.stations = Array.from({ length: 300 }, (_none, index) => ({
      mac: `02:00:00:00:${(index >> 8).toString(16).padStart(2, '0')}:${(index & 255).toString(16).padStart(2, '0')}`,
      signal: -90 + (index % 60),
      inactive: 1,
    }));
    lab.start();
    const { neighbours, truncated } = await lab.newest('mesh', () => true);
    expect(truncated).toBe(true);
    expect((neighbours as { rssi: number }[]).length).toBe(64);
    expect((neighbours as { rssi: number }[])[0]!.rssi).toBe(-31);
  });
});

describe('the session', () => {
  it('is renewed once when rpcd forgot it, as after a reboot', async () => {
    lab = await servedRadio();
    lab.radio.sessions.forgetAll();
    await eventually('a second login', () => lab.radio.sessions.logins === 2);
    const polls = lab.feed('link').length;
    await eventually('it goes on', () => lab.feed('link').length > polls + 2);
    expect(lab.radio.sessions.logins).toBe(2);
    expect(lab.asset()?.status).toBe('online');
  });

  it('waits for rpcd while it restarts, without a storm of logins', async () => {
    lab = await servedRadio();
    lab.radio.stopRpcd();
    await lab.until('offline');
    expect(lab.asset()?.reason).toBe('is restarting its rpcd, or has none');
    lab.radio.isRpcdUp = true;
    await lab.until('online');
  });

  it('is no success when it has no rights, and the remedy is reported', async () => {
    lab = await vendorradioLab();
    lab.radio.sessions.acls = {};
    lab.start();
    await eventually('it is said', () => lab.logged(/install the ACL/u).length === 1);
    expect(lab.hub.hub.assets()).toEqual([]);
    lab.radio.sessions.acls = full_acls;
    await lab.until('online');
  });
});

describe('an answer that is no success', () => {
  it.each([
    ['invalid argument, as of the first OpenWrt 25.12', [2]],
    ['not found', [4]],
    ['unknown method', [3]],
    ['no permission', [6]],
    ['a timeout in the radio', [7]],
    ['Access denied', { code: -32_002, message: 'Access denied' }],
    ['a timeout in the web server', { code: -32_003, message: 'ubus request timed out' }],
    ['success without a body', [0]],
  ] as const)('costs only what was asked: %s', async (_name, answer) => {
    lab = await vendorradioLab();
    lab.radio.answers.set('iwinfo assoclist', answer);
    lab.start();
    await lab.until('online');
    await eventually('several polls', () => lab.feed('link').length > 4);
    expect(lab.feed('link').at(-1)).toMatchObject({ channel: 36, peers: null });
    expect(lab.feed('mesh')).toEqual([]);
    expect(lab.logged(/reports no peers/u).length).toBeLessThanOrEqual(1);
    expect(lab.radio.sessions.logins).toBeLessThanOrEqual(2);
  });

  it.each([
    ['login page', /is not JSON/u],
    ['invalid JSON', /is not JSON/u],
    ['no ubus', /uhttpd-mod-ubus/u],
    ['mute', /does not answer within/u],
  ] as const)('for the whole radio has a sentence of its own: %s', async (mood, sentence) => {
    lab = await vendorradioLab({ limits: { request_ms: 300 } });
    lab.radio.mood = mood;
    lab.start();
    await eventually('it is said once', () => lab.logged(/radio is unavailable/u).length === 1);
    expect(JSON.stringify(lab.logged(/radio is unavailable/u))).toMatch(sentence);
    lab.radio.mood = 'well';
    await lab.until('online');
  });
});

describe('the certificate', () => {
  it('of the first contact is the only one, and another one never sees the password', async () => {
    const dir = await makeDirectory();
    lab = await servedRadio({ tls: await selfSignedRadio(dir, 'first') });
    await lab.radio.lose();
    const { logins } = lab.radio.sessions;
    lab.radio.showCertificate(await selfSignedRadio(dir, 'other'));
    await lab.radio.start();
    await eventually('it is refused', () => lab.logged(/another certificate/u).length > 0);
    await lab.restart();
    await eventually('it is refused after a restart', () => lab.logged(/another certificate/u).length > 0);
    expect(lab.radio.sessions.logins).toBe(logins);
  });
});

describe('Mesh Rider firmware', () => {
  it('reports link state, temperature, voltage and position by its files', async () => {
    lab = await vendorradioLab();
    const { wifi } = lab.radio;
    wifi.isMeshRider = true;
    wifi.files.set(
      '/tmp/linkstate_current.json',
      JSON.stringify({
        linkstate: {
          oper_chan: '12',
          oper_freq: '915',
          chan_width: '26',
          noise: '-83.4',
          activity: '26',
          sta_stats: [
            {
              mac: '02:00:00:aa:bb:02',
              rssi: '-50',
              rssi_ant: ['-51', '-55'],
              mcs: '4',
              pl_ratio: '2',
              inactive: '30',
            },
          ],
          mesh_stats: [
            { orig_address: '02:00:00:aa:bb:02', tq: '255', hop_status: 'direct', last_seen_msecs: '100' },
          ],
        },
      }),
    );
    wifi.files.set('/tmp/run/pancake.txt', '{"Temperature":"45","VIN VOLTAGE":"151"}');
    wifi.files.set('/var/run/gps/latitude', '47.39\n');
    wifi.files.set('/var/run/gps/longitude', '8.54\n');
    lab.start();
    expect(await lab.newest('link', () => true)).toMatchObject({
      freq_mhz: 915,
      bandwidth_mhz: 26,
      busy_pct: 26,
      noise: -83.4,
    });
    expect(await lab.newest('mesh', () => true)).toMatchObject({
      protocol: 'batman_iv',
      neighbours: [
        {
          rssi: -50,
          rssi_ant: [-51, -55],
          loss_pct: 2,
          tq_pct: 100,
          hops: 'direct',
          tx_rate_bps: 72_200_000,
        },
      ],
    });
    expect(await lab.newest('status', () => true)).toMatchObject({
      temperature_c: 45,
      voltage: 7.48,
      source: 'linkstate',
    });
    expect(await lab.newest('gps', () => true)).toMatchObject({ lat: 47.39, lon: 8.54, alt_m: null });
    expect(lab.offered()).toEqual(['refresh', 'scan', 'set_mesh_channel', 'reboot']);
  });

  it('without the link state falls back to iwinfo and reports what to switch on', async () => {
    lab = await vendorradioLab();
    lab.radio.wifi.isMeshRider = true;
    lab.start();
    expect(await lab.newest('status', () => true)).toMatchObject({ source: 'iwinfo' });
    expect(lab.logged(/Enable Link Status Log/u)).toHaveLength(1);
    expect(await lab.newest('mesh', () => true)).toMatchObject({ protocol: null });
  });
});

describe('radios of one kit', () => {
  it('know each other: asset, name, and what each receives of the other; neither becomes a child', async () => {
    lab = await vendorradioLab();
    const boat = new FakeRadio({ mac: '02:00:00:AA:BB:02' });
    await boat.start();
    boat.wifi.stations = [{ mac: '02:00:00:AA:BB:01', signal: -64, inactive: 5 }];
    try {
      const radios = [lab.radioOptions(), lab.radioOptions({ name: 'boat', port: boat.port })];
      lab.start({ radios, poll_s: 0.1, peers: 'assets' });
      expect(await lab.newest('radio', ({ remote_rssi }) => remote_rssi !== null)).toMatchObject({
        rssi: -61,
        remote_rssi: -64,
      });
      const { neighbours } = lab.feed('mesh').at(-1) ?? {};
      expect(neighbours).toMatchObject([{ name: 'boat', asset_key: 'radio:020000aabb02' }]);
      await eventually('several polls', () => lab.feed('link', 'boat').length > 6);
      expect(
        lab.hub.hub
          .assets()
          .map(({ key }) => key)
          .toSorted(),
      ).toEqual(['radio:020000aabb01', 'radio:020000aabb02']);
    } finally {
      await boat.stop();
    }
  });

  it('have other peers as children, which go offline when they are not received', async () => {
    lab = await vendorradioLab();
    lab.start({ ...lab.options({}, { peers: 'assets' }), names: { '02-00-00-AA-BB-02': 'Rover' } });
    await lab.until('online', 'Rover');
    expect(lab.announced('Rover')).toMatchObject({
      asset_key: 'radio:020000aabb01:peer:020000aabb02',
      parent_id: lab.asset()?.id,
    });
    expect(await lab.newest('status', () => true, 'Rover')).toMatchObject({
      online: true,
      inactive_ms: 40,
      source: 'peer',
    });
    lab.radio.wifi.stations[0]!.inactive = 40_000;
    await lab.until('offline', 'Rover');
    lab.radio.wifi.stations[0]!.inactive = 1;
    await lab.until('online', 'Rover');
  });

  it('are reported when they are one device under two addresses', async () => {
    lab = await vendorradioLab();
    const twin = new FakeRadio();
    await twin.start();
    try {
      lab.start({
        radios: [lab.radioOptions(), lab.radioOptions({ name: 'twin', port: twin.port })],
        poll_s: 0.1,
      });
      await eventually('it is said', () => lab.logged(/claimed the identity of another one/u).length === 1);
      await eventually('the other one is served', () => lab.hub.hub.assets().length === 1);
    } finally {
      await twin.stop();
    }
  });
});

describe('the password file', () => {
  it('is refused before anything is sent when every user can read it', async () => {
    lab = await vendorradioLab();
    const password_file = join(lab.dir, 'open');
    await writeFile(password_file, 'secret', { mode: 0o604 });
    lab.start(lab.options({ password_file }));
    await eventually('it is said', () => lab.logged(/chmod o=/u).length > 0);
    expect(lab.radio.requests).toBe(0);
  });
});
