/** Saving power while the battery is low. */
import { describe, expect, it } from 'vitest';
import { charging_min_ms, LowBattery } from '../../../../src/kit/app/low-battery.ts';
import { PacePolicy } from '../../../../src/kit/app/policy.ts';
import { texts } from '../../../../src/kit/app/texts.ts';
import { type LowBatteryConfig, lowBatterySection } from '../../../../src/kit/config/low-battery.ts';
import { power } from '../../../../drivers/power/power.ts';
import { eventually } from '../../../support/eventually.ts';
import { hubLab } from '../../../support/kit/hub-lab.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { testDirectory } from '../../../support/test-directory.ts';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

function start(options: object = {}) {
  const battery: { battery: number | null; battery_charging: boolean | null } = {
    battery: 80,
    battery_charging: false,
  };
  const config: { now: LowBatteryConfig | undefined } = { now: lowBatterySection.parse(options) };
  const log = recordingLog();
  const clock = { ms: 0 };
  const changes: string[] = [];
  const wants: [string, string | null][] = [];
  const low = new LowBattery({
    config: () => config.now,
    battery: () => battery,
    now: () => clock.ms,
    onChange: () => void changes.push('policy'),
    onStream: (key) => void changes.push(key),
    log,
  });
  const streams = low.streams({
    want: (key, url) => void wants.push([key, url]),
    urlOf: (key) => `whep/${key}`,
    healthOf: () => ({ state: 'works' }),
  });
  /** Whether it is low when it has been like this for `after_ms`. */
  const at = (pct: number | null, isCharging: boolean | null = false, after_ms = charging_min_ms) => {
    Object.assign(battery, { battery: pct, battery_charging: isCharging });
    low.look();
    clock.ms += after_ms;
    low.look();
    return low.reason() !== null;
  };
  return { low, at, log, changes, wants, streams, config };
}

describe('A low battery', () => {
  it('is one below the limit until it is well above it, or charging; an unknown charge changes nothing', () => {
    const { at } = start({ below_pct: 20, until_pct: 30 });
    const seen = [
      at(50),
      at(20),
      at(19.9),
      at(null),
      at(29),
      at(30),
      at(25),
      at(10),
      at(10, true),
      at(10, null),
    ];
    expect(seen).toEqual([false, false, true, true, true, false, false, true, false, true]);
  });

  it('stays one while a charger comes and goes, and ends once it has been charging for a minute', () => {
    const { at, log, changes } = start({ below_pct: 20, until_pct: 30 });
    const soon_ms = charging_min_ms - 1;
    expect(at(15)).toBe(true);
    for (let round = 0; round < 5; round += 1) {
      expect(at(15, true, soon_ms)).toBe(true);
      expect(at(15, false, soon_ms)).toBe(true);
    }
    expect(at(15, true, soon_ms)).toBe(true);
    expect(at(15, true, 1)).toBe(false);
    expect(changes).toEqual(['policy', 'policy']);
    expect(log.at('warn')).toEqual([texts.saving_power]);
  });

  it('changes nothing where the section is left out, and nothing more once it is removed', () => {
    const { at, low, config } = start();
    expect(at(5)).toBe(true);
    config.now = undefined;
    expect([at(5), low.rates(), low.allows('speedtest')]).toEqual([false, undefined, true]);
  });

  it('limits rates, never above those of file and cloud', () => {
    const { at, low } = start({ rates_hz: { default: 0.2, gps: 1, attitude: 5 } });
    const uplink = {
      messages_per_s_max: 0,
      window_messages: 1,
      packet_ms: 0,
      metered: [],
      backlog_bytes_per_s: { default: 0, satellite: 0, cellular: 0, ethernet: 0, wifi: 0 },
    };
    const file = { feeds: { rates_hz: { attitude: 2 }, rate_default_hz: 5 }, uplink };
    const pace = new PacePolicy(
      () => file,
      () => undefined,
      () => low.rates(),
    );
    expect(pace.rates()).toEqual({ attitude: 2, default: 5 });
    at(10);
    pace.apply({ rates_hz: { default: 0.5 } });
    expect(pace.rates()).toEqual({ attitude: 0.5, gps: 0.5, default: 0.2 });
  });

  it('refuses speed tests and snapshots, and reports what is off', () => {
    const { at, low, log, changes } = start();
    expect(low.allows('speedtest')).toBe(true);
    at(10);
    expect([low.allows('speedtest'), low.allows('snapshot'), low.allows('arm')]).toEqual([
      texts.command_saved('speedtest'),
      texts.command_saved('snapshot'),
      true,
    ]);
    const savings = [texts.rates_reduced, texts.no_speed_tests, texts.events_only].join(', ');
    expect(low.reason()).toBe(texts.battery_low(10, savings));
    at(90);
    expect(low.reason()).toBeNull();
    expect(log.lines.map(({ sentence }) => sentence)).toEqual([texts.saving_power, texts.power_back]);
    expect(changes).toEqual(['policy', 'policy']);
  });

  it('keeps what the configuration keeps', () => {
    const { at, low, wants, streams } = start({ speed_tests: true, camera_video: true });
    streams.want('gate', 'rtsp://gate');
    at(10);
    expect([low.allows('speedtest'), low.allows('snapshot'), streams.urlOf('gate')]).toEqual([
      true,
      true,
      'whep/gate',
    ]);
    expect(wants).toEqual([['gate', 'rtsp://gate']]);
    expect(low.reason()).toBe(texts.battery_low(10, texts.rates_reduced));
  });

  it('stops the video of all cameras, and restores it as the drivers want it then', () => {
    const { at, wants, streams, changes } = start();
    streams.want('gate', 'rtsp://gate');
    streams.want('yard', 'rtsp://yard');
    at(10);
    expect(streams.urlOf('gate')).toBeNull();
    streams.want('roof', 'rtsp://roof');
    streams.want('yard', null);
    expect(wants.slice(2)).toEqual([
      ['gate', null],
      ['yard', null],
      ['roof', null],
      ['yard', null],
    ]);
    at(90);
    expect(wants.slice(6)).toEqual([
      ['gate', 'rtsp://gate'],
      ['roof', 'rtsp://roof'],
    ]);
    expect(streams.urlOf('gate')).toBe('whep/gate');
    expect(changes).toEqual(['policy', 'gate', 'yard', 'policy', 'gate', 'roof']);
  });

  it('is that which the power driver reads from the kernel', async () => {
    const sys = await testDirectory();
    const dir = join(sys, 'class/power_supply/BAT0');
    await mkdir(dir, { recursive: true });
    const files = { type: 'Battery', present: '1', capacity: '12', status: 'Discharging' };
    for (const [name, text] of Object.entries(files)) await writeFile(join(dir, name), `${text}\n`);
    const lab = hubLab({ configured: ['power'] });
    void lab.run(power, 'power', { options: { roots: { sys } } });
    const low = new LowBattery({
      config: () => lowBatterySection.parse({}),
      battery: () => lab.hub.kit(),
      onChange: () => undefined,
      onStream: () => undefined,
      log: lab.log,
    });
    try {
      await eventually('the battery is low', () => {
        low.look();
        return low.allows('speedtest') !== true;
      });
      expect(low.reason()).toContain('12 %');
    } finally {
      await lab.stop();
    }
  });
});
