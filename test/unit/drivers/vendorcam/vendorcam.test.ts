/** The vendorcam driver as a whole: conformance, what it announces and publishes, and how it survives a camera. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { vendorcam, vendorcamWith } from '../../../../drivers/vendorcam/vendorcam.ts';
import { texts as driverTexts } from '../../../../src/toolkit/driver/texts.ts';
import { FakeVendorCamera, type Mood } from '../../../fakes/fake-vendor-camera.ts';
import { driverConformance } from '../../../support/drivers/driver-conformance.ts';
import { elapse } from '../../../support/elapse.ts';
import { eventually } from '../../../support/eventually.ts';
import { quick_limits, vendorcamLab, type VendorcamLab } from '../../../support/cameras/vendorcam-lab.ts';
import { texts } from '../../../../drivers/vendorcam/texts.ts';

let lab: VendorcamLab | undefined;
afterEach(async () => {
  await lab?.stop();
  lab = undefined;
});
const running = async (...about: Parameters<typeof vendorcamLab>): Promise<VendorcamLab> => {
  lab = await vendorcamLab(...about);
  return lab;
};
const served = async (...about: Parameters<typeof vendorcamLab>): Promise<VendorcamLab> => {
  const it = await running(...about);
  it.start();
  await it.online();
  return it;
};

describe('the vendorcam driver', () => {
  let peer: VendorcamLab;
  beforeEach(async () => {
    peer = await vendorcamLab({ secure: true });
  });
  driverConformance({
    driver: vendorcamWith(quick_limits),
    options: () => peer.options(),
    peer: {
      start: async () => peer.camera.start(),
      lose: async () => peer.camera.lose(),
      restore: async () => peer.camera.start(),
      stop: async () => peer.camera.stop(),
    },
  });
});

describe('a camera', () => {
  it('is announced with its name, model and firmware under its MAC', async () => {
    const { online, start } = await running({ secure: true });
    start();
    expect(await online()).toMatchObject({ key: 'vendorcam:ec71db000001', type: 'camera' });
    const announced = lab?.hub.outbox.drafts.findLast((draft) => draft.data?.['asset_key']);
    expect(announced?.data).toMatchObject({
      name: 'Gate',
      vendor: 'Reolink',
      model: 'RLC-823A',
      firmware: 'v3.1.0.2356',
      protocol: 'vendorcam',
      status: 'online',
      whep_url: null,
    });
  });

  it('gives the media server its sub stream with the credentials, and nothing of it is published', async () => {
    const wanted: (string | null)[] = [];
    const { driver, options, camera } = await running();
    const { hubLab } = await import('../../../support/kit/hub-lab.ts');
    const streams = {
      want: (_key: string, url: string | null) => void wanted.push(url),
      urlOf: () => null,
      healthOf: () => undefined,
    };
    const hub = hubLab({ configured: ['cameras'], streams, state_dir: lab?.dir ?? '' });
    void hub.run(driver, 'cameras', { options: options() });
    await eventually('the stream is told', () => wanted.length > 0);
    expect(wanted).toEqual(['rtsp://admin:secret-Pass1@127.0.0.1:554/Preview_01_sub']);
    await hub.stop();
    expect(JSON.stringify([hub.outbox.drafts, hub.log.lines])).not.toContain('secret-Pass1');
    expect(camera.sessions.open).toBe(0);
  });

  it.each(['events', 'states', 'plain numbers'] as const)(
    'tells motion and what it sees once each way, with firmware that has %s',
    async (alarms) => {
      const { camera, feed } = await served({ firmware: { alarms } });
      await eventually('the first motion is told', () => feed('motion').length === 1);
      camera.camera.motion = true;
      camera.camera.ai.add('people');
      await eventually(
        'both are told',
        () => feed('motion').length === 2 && feed('ai_detection').length === 2,
      );
      expect(feed('motion')[1]).toMatchObject({ detected: true });
      expect(feed('ai_detection')[1]).toMatchObject({ detected: true, types: ['people'] });
      expect(feed('status').at(-1)).toEqual({ online: true, motion_alarm: true, ai_alarm: true });
      camera.camera.motion = false;
      camera.camera.ai.clear();
      await eventually(
        'both are over',
        () => feed('motion').length === 3 && feed('ai_detection').length === 3,
      );
      const asked = camera.requests;
      await eventually('it is asked on and on', () => camera.requests > asked + 2);
      expect(feed('motion').map(({ detected }) => detected)).toEqual([false, true, false]);
      expect(feed('status').at(-1)).toEqual({ online: true, motion_alarm: false, ai_alarm: false });
    },
  );

  it('leaves nothing detected when it is lost, reports why, and reports it again when it is back', async () => {
    const { camera, start, online, offline, feed, hub } = await running();
    camera.camera.motion = true;
    camera.camera.ai.add('vehicle');
    start();
    await online();
    await eventually('it sees', () => feed('ai_detection').at(-1)?.['detected'] === true);
    await camera.lose();
    expect(await offline()).toMatch(/refuses the connection; switch HTTPS on/u);
    expect(feed('motion').at(-1)).toHaveProperty('reason');
    expect(feed('ai_detection').at(-1)).toMatchObject({ detected: false, types: [] });
    expect(feed('status').at(-1)).toEqual({ online: false, motion_alarm: null, ai_alarm: null });
    hub.outbox.clear();
    await camera.start();
    await online();
    await eventually('it sees again', () => feed('motion').at(-1)?.['detected'] === true);
    expect(hub.log.at('warn').filter((line) => line === 'device is unavailable')).toHaveLength(1);
    expect(hub.log.at('info').filter((line) => line === 'device is back')).toHaveLength(1);
    const back = hub.log.lines.find(({ sentence }) => sentence === 'device is back');
    expect(back?.facts['down_s']).toBeGreaterThan(0);
  });

  it('leaves nothing detected when the connector stops', async () => {
    const { camera, start, online, feed, hub } = await running();
    camera.camera.motion = true;
    start();
    await online();
    await eventually('it sees', () => feed('motion').at(-1)?.['detected'] === true);
    await hub.stop();
    expect(feed('motion').at(-1)).toMatchObject({ detected: false, reason: texts.connector_stopped });
  });

  it('is asked by one request at a time over one connection', async () => {
    const { camera } = await served();
    await eventually('some polls', () => camera.requests > 10);
    expect(camera.busiest).toBe(1);
    expect(camera.connections).toBe(1);
  });

  it.each<[Mood, RegExp]>([
    ['garbage', /not a reply of its interface/u],
    ['hangs', /does not answer within 1.5 s/u],
    ['drips', /does not answer within 1.5 s/u],
    ['cuts off', /closed|aborted|answered/u],
    ['bad gateway', /HTTP status 502/u],
    ['redirects', /set tls: true/u],
  ])('is lost when its answer is of the kind "%s", reports it, and comes back', async (mood, reason) => {
    const { camera, online, offline, hub } = await served();
    camera.mood = mood;
    expect(await offline()).toMatch(reason);
    hub.outbox.clear();
    camera.mood = 'well';
    await online();
    expect(camera.sessions.logins).toBeLessThanOrEqual(2);
  });

  it.each<Mood>(['not UTF-8', 'slow'])('is served on while its replies are %s', async (mood) => {
    const { camera, start, online, feed } = await running();
    camera.mood = mood;
    start();
    await online();
    camera.camera.motion = true;
    await eventually('motion is told', () => feed('motion').at(-1)?.['detected'] === true);
  });

  it('is not taken for lost when one poll in between has too few parts', async () => {
    const { camera, hub } = await served({ firmware: { alarms: 'states' } });
    camera.mood = 'too short';
    const before = camera.requests;
    await eventually('it is asked', () => camera.requests > before);
    camera.mood = 'well';
    await elapse(500);
    expect(hub.outbox.drafts.filter((draft) => draft.data?.['status'] === 'offline')).toEqual([]);
  });

  it('is refused with a remedy when it reports no identity, and accepted with the identity on its label', async () => {
    const { camera, start, hub, options, restart, online } = await running({ mac: '' });
    start();
    await eventually('it is refused', () => hub.hub.drivers()[0]?.state === 'rejected');
    expect(JSON.stringify(hub.log.lines)).toMatch(/set identity to the serial number/u);
    expect(camera.sessions.open).toBe(0);
    await restart(options({ identity: 'SN-7' }));
    expect(await online()).toMatchObject({ key: 'vendorcam:SN-7' });
  });

  it('reports its doorbell as a separate event', async () => {
    const { camera, start, online, feed } = await running();
    camera.camera.rings = false;
    start();
    await online();
    camera.camera.rings = true;
    await eventually('it rings', () => feed('doorbell').at(-1)?.['detected'] === true);
    camera.camera.rings = false;
    await eventually('it is over', () => feed('doorbell').at(-1)?.['detected'] === false);
    expect(feed('doorbell')).toHaveLength(2);
  });

  it('keeps its identity when its MAC changes between cable and Wi-Fi, because it has a UID', async () => {
    const { camera, start, online, restart } = await running();
    camera.uid = '95270000ABCDEF01';
    start();
    expect(await online()).toMatchObject({ key: 'vendorcam:95270000ABCDEF01' });
    camera.mac = 'EC:71:DB:00:00:02';
    await restart();
    expect(await online()).toMatchObject({ key: 'vendorcam:95270000ABCDEF01' });
  });

  it('keeps the identity to which its entry was bound before it reported a UID', async () => {
    const { camera, start, online, restart } = await running();
    start();
    expect(await online()).toMatchObject({ key: 'vendorcam:ec71db000001' });
    camera.uid = '95270000ABCDEF01';
    await restart();
    expect(await online()).toMatchObject({ key: 'vendorcam:ec71db000001' });
  });

  it('is not published as the one before when another one takes its address between two polls', async () => {
    const { camera, offline, feedOf, hub } = await served();
    camera.mac = 'EC:71:DB:00:00:99';
    camera.camera.motion = true;
    camera.sessions.forgetAll();
    expect(await offline()).toContain('vendorcam:ec71db000099');
    expect(feedOf('motion', 'vendorcam:ec71db000001').filter(({ detected }) => detected === true)).toEqual(
      [],
    );
    expect(hub.log.at('error')).toEqual([driverTexts.identity_claimed]);
  });

  it('is served once when two entries name it', async () => {
    const { camera, start, online, options, hostOptions, hub } = await running();
    const other = hostOptions({ name: 'again', host: 'localhost' });
    start({ ...options(), hosts: [hostOptions(), other] });
    await online();
    await eventually('the other is refused', () => hub.log.at('error').length === 1);
    expect(hub.hub.assets()).toHaveLength(1);
    expect(camera.count('Reboot')).toBe(0);
  });

  it('is served on when another host is away', async () => {
    const { camera, start, online, options, hostOptions, feed, hub } = await running();
    start({ ...options(), hosts: [hostOptions(), hostOptions({ name: 'away', host: '127.0.0.2' })] });
    await online();
    await eventually('the other is away', () => hub.log.at('warn').includes('device is unavailable'));
    camera.camera.motion = true;
    await eventually('motion is told', () => feed('motion').at(-1)?.['detected'] === true);
  });
});

describe('the options', () => {
  it.each([
    [{ hosts: [] }, /hosts/u],
    [{ hosts: [{ name: 'a', host: 'https://cam', password_file: '/p' }] }, /without a scheme/u],
    [
      { hosts: ['a', 'b'].map((name) => ({ name, host: 'cam', password_file: '/p' })) },
      /same address and port/u,
    ],
    [{ hosts: ['x', 'y'].map((host) => ({ name: 'a', host, password_file: '/p' })) }, /a unique name/u],
    [{ hosts: [{ name: 'a', host: 'cam', password: 'p' }] }, /password/u],
  ])('%# with a fault are refused by name', (options, fault) => {
    expect(() => vendorcam.configure(options)).toThrow(fault);
  });
});

describe('a camera that claims the MAC address of another', () => {
  it('is not served, and the other one is, whichever answers first after a restart', async () => {
    const { camera, start, hostOptions, options, restart } = await running();
    const thief = new FakeVendorCamera({ mac: 'EC:71:DB:00:00:66' });
    await thief.start();
    try {
      const hosts = [hostOptions(), hostOptions({ name: 'yard', port: thief.port })];
      start({ ...options(), hosts });
      const online = (): readonly string[] =>
        (lab?.hub.hub.assets() ?? []).filter(({ status }) => status === 'online').map(({ key }) => key);
      await eventually('both are served', () => online().length === 2);
      await elapse(200);
      await camera.lose();
      thief.mac = camera.mac;
      await restart({ ...options(), hosts });
      await eventually('it is said', () => (lab?.hub.log.at('error').length ?? 0) > 0);
      const facts = lab?.hub.log.lines.find(({ level }) => level === 'error')?.facts;
      expect(facts?.['name']).toBe('yard');
      expect(facts?.['reason']).toMatch(/^it is the same device as "gate".*check this one for tampering$/u);
      expect(online()).toEqual([]);
      await camera.start();
      await eventually('the real one is served', () => online().length === 1);
      expect(lab?.asset(camera.camera.name)?.key).toBe('vendorcam:ec71db000001');
    } finally {
      await thief.stop();
    }
  });
});
