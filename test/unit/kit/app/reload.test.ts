/** A new configuration while everything runs: what holds at once, what waits for a restart, and what the log has of it. */
import { describe, expect, it } from 'vitest';
import { restartKeys } from '../../../../src/kit/app/reload.ts';
import { startAppLab } from '../../../support/app-lab.ts';
import { useFakeTime } from '../../../support/fake-time.ts';

useFakeTime();

const red = 'drivers: [{ driver: drones, name: red, options: { keys: [red] } }]\n';

describe('a reload', () => {
  it('brings in the rates of feeds at once, and no driver restarts', async () => {
    const lab = await startAppLab(`${red}feeds: { rates_hz: { default: 10, gps: 10 } }\n`);
    expect(await lab.gpsRateOf('red')).toBe(10);
    await lab.reload(`${red}feeds: { rates_hz: { default: 10, gps: 2 } }\n`);
    expect(await lab.gpsRateOf('red')).toBe(2);
    expect(lab.events).toEqual(['red starts']);
  });

  it('limits the rates that the cloud requested to those of the new file', async () => {
    const lab = await startAppLab(`${red}feeds: { rates_hz: { default: 10, gps: 10 } }\n`);
    lab.pace.apply({ rates_hz: { gps: 5 } });
    await lab.reload(`${red}feeds: { rates_hz: { default: 10, gps: 20 } }\n`);
    expect(await lab.gpsRateOf('red')).toBe(5);
    await lab.reload(`${red}feeds: { rates_hz: { default: 10, gps: 1 } }\n`);
    expect(await lab.gpsRateOf('red')).toBe(1);
  });

  it('withdraws a command that the new policy forbids, and offers it again with the next', async () => {
    const lab = await startAppLab(red);
    const offered = (): unknown => lab.outbox.on(`asset/${lab.idOf('red')}/commands`).at(-1);
    expect(offered()).toMatchObject({ revision: 1, commands: [{ name: 'land' }, { name: 'arm' }] });
    await lab.reload(`${red}commands: { max_risk: medium }\n`);
    expect(offered()).toMatchObject({ revision: 2, commands: [{ name: 'land' }] });
    expect(lab.hub.findCommand(lab.idOf('red'), 'arm')).toEqual({
      refusal: 'arm has high risk, and this kit allows medium at most (commands.max_risk)',
    });
    await lab.reload(red);
    expect(offered()).toMatchObject({ revision: 3, commands: [{ name: 'land' }, { name: 'arm' }] });
  });

  it('brings in the levels of the log at once', async () => {
    const lab = await startAppLab(`${red}log: { level: warn }\n`);
    lab.log.info({}, 'not wanted');
    await lab.reload(`${red}log: { level: info }\n`);
    lab.log.info({}, 'wanted');
    expect(lab.logged().map(({ msg }) => msg)).toEqual([
      'configuration reloaded: other settings log',
      'wanted',
    ]);
  });

  it('logs what it did, by drivers and sections', async () => {
    const lab = await startAppLab(`${red}kit_name: Kit 7\n`);
    lab.logged();
    await lab.reload('kit_name: Kit 8\ndrivers: [{ driver: drones, name: green }]\n');
    expect(lab.logged()).toMatchObject([
      { level: 'info', drivers_added: 'green', drivers_removed: 'red', settings_changed: 'kit_name' },
    ]);
    expect(lab.live.config.kit_name).toBe('Kit 8');
    await lab.reload('kit_name: Kit 8\ndrivers: [{ driver: drones, name: green }]\n');
    expect(lab.logged()).toMatchObject([{ changed: 'nothing' }]);
  });

  it('names what waits for a restart once, keeps what runs until then, and is silent again once it is taken back', async () => {
    const lab = await startAppLab(`${red}outbox: { age_max_days: 30 }\n`);
    lab.logged();
    const next = `${red}outbox: { age_max_days: 7 }\nuplink: { window_messages: 8, packet_ms: 200 }\n`;
    await lab.reload(next);
    const sentence =
      'outbox, uplink.window_messages changed in the configuration; restart kit-connector to apply';
    expect(lab.logged()).toMatchObject([
      { level: 'warn', msg: sentence, file: 'config.yaml' },
      { settings_changed: 'uplink' },
    ]);
    const { config } = lab.live;
    expect(config.outbox.age_max_ms).toBe(30 * 24 * 3_600_000);
    expect(config.uplink).toMatchObject({ window_messages: 64, packet_ms: 200 });
    expect(config.warnings).toEqual([sentence]);
    await lab.reload(next);
    expect(lab.logged()).toMatchObject([{ level: 'info', changed: 'nothing' }]);
    await lab.reload(`${red}outbox: { age_max_days: 30 }\n`);
    expect(lab.logged()).toMatchObject([{ settings_changed: 'uplink' }]);
    expect(lab.live.config.warnings).toEqual([]);
  });

  it('compares with the configuration of the start, not with that of the previous reload', async () => {
    const lab = await startAppLab(`${red}state_dir: /tmp/first\n`);
    await lab.reload(`${red}state_dir: /tmp/second\n`);
    await lab.reload(`${red}state_dir: /tmp/third\n`);
    expect(lab.live.config.state_dir).toBe('/tmp/first');
    expect(lab.live.config.warnings).toEqual([
      'state_dir changed in the configuration; restart kit-connector to apply',
    ]);
  });
});

describe('the keys that wait for a restart', () => {
  it('include every key that does not apply immediately, by its name in the file', async () => {
    const lab = await startAppLab(red);
    const before = lab.live.config;
    const another = Object.fromEntries(Object.keys(before).map((key) => [key, 'another']));
    const uplink = { ...before.uplink, packet_ms: before.uplink.packet_ms + 1 };
    const keys = restartKeys(before, { ...before, ...another, uplink }).toSorted();
    const sections = ['broker', 'clock', 'kit_id', 'media', 'metrics', 'outbox', 'runtime_dir', 'service'];
    expect(keys).toEqual([...sections, 'socket_group', 'state_dir']);
  });
});
