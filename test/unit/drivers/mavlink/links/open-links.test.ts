/** Links over which strangers can pass for a vehicle: which they are, and where a technician reads it. */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/links/texts.ts';
import { mavlinkOptions, openLinks } from '../../../../../drivers/mavlink/options.ts';
import { eventually } from '../../../../support/eventually.ts';
import { withLab } from '../mavlink-lab.ts';
import { linkLog, mavlink } from '../../../../../drivers/mavlink/mavlink.ts';
import { recordingLog } from '../../../../support/recording-log.ts';
import { hubLab } from '../../../../support/kit/hub-lab.ts';
import { freePort } from '../../../../support/ports.ts';

const links = [
  { kind: 'udp_listen', name: 'field', port: 14_550 },
  { kind: 'udp_listen', name: 'own', host: '127.0.0.2', port: 14_551 },
  { kind: 'udp_listen', host: '::1', port: 14_552 },
  { kind: 'tcp_listen', host: '10.0.0.1', port: 5_760 },
  { kind: 'tcp_listen', host: 'localhost', port: 5_761 },
  { kind: 'udp_client', name: 'mesh', host: '10.41.1.2', port: 14_550, local_port: 14_555 },
  { kind: 'tcp_client', host: '10.41.1.3', port: 5_760 },
  { kind: 'serial', path: '/dev/ttyUSB0' },
];
const openOf = (more: object) => openLinks(mavlinkOptions.parse({ links, ...more }));

describe('An open link', () => {
  it('receives unsigned frames from any host, and no configured vehicle names its hosts', () => {
    const open = [
      { name: 'field', place: 'UDP port 14550' },
      { name: 'tcp listen 10.0.0.1:5760', place: 'TCP port 5760 of 10.0.0.1' },
      { name: 'mesh', place: 'UDP port 14555' },
    ];
    const hosts = ['10.0.0.7'];
    expect(openOf({})).toEqual(open);
    expect(openOf({ vehicles: { a: { hosts }, b: {} } })).toEqual(open);
    expect(openOf({ vehicles: { a: { hosts }, b: { hosts: [] } } })).toEqual([]);
    expect(openOf({ signing: { key_file: 'key', clock_file: 'clock' } })).toEqual([]);
  });

  it('is named in the log once, and in the status as long as the driver runs', async () => {
    await withLab({ link: { host: '0.0.0.0' } }, async (lab) => {
      const facts = () => lab.hub.drivers()[0]?.facts ?? {};
      await eventually('the status has it', () => facts()['unsigned'] !== undefined);
      expect(facts()['unsigned']).toBe(texts.open_links(['field']));
      expect(lab.log.at('warn').filter((line) => line === texts.open)).toHaveLength(1);
    });
    await withLab(async (lab) => {
      await lab.fly();
      await lab.until('online');
      await eventually('there is a status', () => lab.hub.drivers()[0]?.facts['online'] === 1);
      expect(lab.hub.drivers()[0]?.facts).not.toHaveProperty('unsigned');
      expect(lab.log.at('warn')).toEqual([]);
    });
  });
});

describe('Link log', () => {
  it('logs each failed opening, opening, loss and restoration of a link once at info or warn', () => {
    const log = recordingLog();
    const report = linkLog(log, '/dev/ttyACM0');
    report(false, 'no such file');
    report(false, 'no such file');
    report(true, undefined);
    report(false, 'gone');
    report(false, 'gone');
    report(true, undefined);
    expect(log.lines.map(({ level, sentence }) => `${level} ${sentence}`)).toEqual([
      `warn ${texts.open_failed}`,
      `debug ${texts.still_down}`,
      `info ${texts.opened}`,
      `warn ${texts.lost}`,
      `debug ${texts.still_down}`,
      `info ${texts.reopened}`,
    ]);
    expect(log.lines[0]?.facts).toEqual({ link: '/dev/ttyACM0', reason: 'no such file' });
    expect(log.lines[3]?.facts).toMatchObject({ reason: 'gone', up_s: expect.any(Number) as number });
    expect(log.lines[5]?.facts).toMatchObject({ down_s: expect.any(Number) as number });
  });

  it('logs no duration when a link opens at the first attempt', () => {
    const log = recordingLog();
    linkLog(log, 'udp')(true, undefined);
    expect(log.lines).toEqual([{ level: 'info', facts: { link: 'udp' }, sentence: texts.opened }]);
  });
});

it('reports of each link what was tried, the answer and the next attempt', async () => {
  const hub = hubLab({ configured: ['drones'] });
  const [closed, open] = [await freePort(), await freePort()];
  const links = [
    { kind: 'tcp_client', host: '127.0.0.1', port: closed, name: 'bench' },
    { kind: 'udp_listen', host: '127.0.0.1', port: open },
  ];
  void hub.run(mavlink, 'drones', { options: { links } });
  try {
    const devices = () => hub.hub.drivers()[0]?.devices ?? [];
    await eventually(
      'both links are reported',
      () => devices().length === 2 && devices().every(({ state }) => state !== 'starting'),
    );
    expect(devices()).toMatchObject([
      { name: 'bench', tried: `tcp client 127.0.0.1:${closed}`, state: 'offline', asset_key: null },
      { name: `udp listen 127.0.0.1:${open}`, state: 'online', reason: null, next_try_at: null },
    ]);
    const [bench] = devices();
    expect(bench?.reason).toMatch(/refuses the connection/u);
    expect(Date.parse(bench?.next_try_at ?? '')).toBeGreaterThanOrEqual(Date.parse(bench?.tried_at ?? ''));
  } finally {
    await hub.stop();
  }
});
