/** Links over which strangers can pass for a vehicle: which they are, and where a technician reads it. */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/links/texts.ts';
import { mavlinkOptions, openLinks } from '../../../../../drivers/mavlink/options.ts';
import { eventually } from '../../../../support/eventually.ts';
import { withLab } from '../mavlink-lab.ts';

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
    await withLab(
      async (lab) => {
        const facts = () => lab.hub.drivers()[0]?.facts ?? {};
        await eventually('the status has it', () => facts()['unsigned'] !== undefined);
        expect(facts()['unsigned']).toBe(texts.open_links(['field']));
        expect(lab.log.at('warn').filter((line) => line === texts.open)).toHaveLength(1);
      },
      { link: { host: '0.0.0.0' } },
    );
    await withLab(async (lab) => {
      await lab.fly();
      await lab.until('online');
      await eventually('there is a status', () => lab.hub.drivers()[0]?.facts['online'] === 1);
      expect(lab.hub.drivers()[0]?.facts).not.toHaveProperty('unsigned');
      expect(lab.log.at('warn')).toEqual([]);
    });
  });
});
