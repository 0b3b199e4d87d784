/** The daemon is stopped for 6, 30 and 90 s (SIGSTOP), as a machine without a free processor stops it; its devices go on. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startSimHost } from '../../../drivers/vendorcam/sim/sim-host.ts';
import { startSimRadio } from '../../../drivers/vendorradio/sim/sim-radio.ts';
import { texts } from '../../../src/kit/app/texts.ts';
import { sleep } from '../../../src/platform/time.ts';
import { startFakeDish } from '../../fakes/fake-dish.ts';
import { FakeDrone } from '../../fakes/fake-drone.ts';
import { startFakeGpsd } from '../../fakes/services/fake-gpsd.ts';
import { startFakeUpsd } from '../../fakes/services/fake-upsd.ts';
import { TcpDrone } from '../../fakes/tcp-drone.ts';
import { eventually } from '../../support/eventually.ts';
import { type Kit, withKit } from '../../support/kit/kit.ts';
import { freePort } from '../../support/ports.ts';

const stops_s = [6, 30, 90] as const;
const host = '127.0.0.1';

/** Starts the devices in this process; returns the driver sections that serve them. */
async function startDevices(kit: Kit, signal: AbortSignal): Promise<readonly object[]> {
  const password_file = join(kit.dir, 'password');
  await writeFile(password_file, 'secret', { mode: 0o600 });
  const [udp, camera, push, radio] = [await freePort(), await freePort(), await freePort(), await freePort()];
  const near = new FakeDrone({ port: udp, airborne: true });
  const far = new TcpDrone({ autopilot: 'px4', sysid: 2, uid: '00000000c0ffee02', airborne: true });
  await near.start();
  await far.start();
  const tcp = await far.listen();
  await startSimHost({ password: 'secret', name: 'Yard', push_port: push }, camera, signal);
  await startSimRadio({ mac: '02:00:00:00:0D:02', user: { name: 'kit', password: 'secret' } }, radio, signal);
  const dish = await startFakeDish();
  const upsd = await startFakeUpsd();
  upsd.upses.set('kit', new Map(Object.entries({ 'ups.status': 'OL', 'battery.charge': '87' })));
  const gpsd = await startFakeGpsd();
  const fix = { class: 'TPV', device: '/dev/gps0', mode: 3, lat: 59.3, lon: 18.1, altHAE: 68 };
  const saying = setInterval(() => gpsd.say(`${JSON.stringify(fix)}\r\n`), 1_000);
  signal.addEventListener('abort', () => {
    clearInterval(saying);
    near.stop();
    far.stop();
    void dish.lose();
    void upsd.lose();
    void gpsd.lose();
  });
  const tls = false;
  return [
    { driver: 'location', options: { gpsd: { port: gpsd.port } } },
    { driver: 'power', options: { interval_s: 1, nut: { port: upsd.port } } },
    { driver: 'starlink', options: { host, port: dish.port, link: 'lo', interval_s: 1 } },
    {
      driver: 'mavlink',
      options: {
        links: [
          { kind: 'udp_listen', host, port: udp },
          { kind: 'tcp_client', host, port: tcp },
        ],
      },
    },
    {
      driver: 'vendorcam',
      options: { hosts: [{ name: 'Yard', host, port: camera, push_port: push, tls, password_file }] },
    },
    {
      driver: 'vendorradio',
      options: {
        radios: [{ kind: 'ubus', name: 'Mast', host, port: radio, tls, username: 'kit', password_file }],
      },
    },
  ];
}

it.each(stops_s)('counts no device as lost after a stop of %d s, and serves all of them', async (stop_s) => {
  await withKit({ rehearsed: false }, async (kit) => {
    const end = new AbortController();
    try {
      const drivers = await startDevices(kit, end.signal);
      await kit.configure({ broker: { url: 'none' }, drivers: [kit.gateway, ...drivers] });
      const daemon = await kit.start();
      const served = async (): Promise<boolean> => {
        const { drivers: shown, assets } = await kit.status();
        return (
          shown.length === drivers.length + 1 &&
          shown.every(({ state }) => state === 'up') &&
          assets.length === 5 &&
          assets.every(({ status }) => status === 'online')
        );
      };
      await eventually('all devices are served', served);
      // A fact of this scene, which is told a while after the start.
      const isTold = (): boolean => daemon.log().some(({ msg }) => msg === texts.degraded_began);
      await eventually('the missing broker is told', isTold);
      const before = daemon.log().length;
      daemon.send('SIGSTOP');
      await sleep(stop_s * 1_000, end.signal);
      daemon.send('SIGCONT');
      // Longer than any silence after which one of them counts as lost.
      await sleep(10_000, end.signal);
      expect(await served()).toBe(true);
      const lines = daemon.log().slice(before);
      expect(lines.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
      expect((await daemon.end('SIGTERM')).code).toBe(0);
    } finally {
      end.abort();
    }
  });
});
