/** An open network on which anyone can send invented vehicles: they exhaust no limit, and real vehicles stay served. */
import { describe, expect, it } from 'vitest';
import {
  contacts_max,
  source_contacts_max,
  vehicles_max,
} from '../../../../../drivers/mavlink/vehicles/newcomers.ts';
import { texts } from '../../../../../drivers/mavlink/vehicles/texts.ts';
import { blank } from '../../../../../drivers/mavlink/wire/messages.ts';
import { autopilotVersion } from '../../../../../drivers/mavlink/sim/telemetry.ts';
import { assetId } from '../../../../../src/contract/identity.ts';
import { channels } from '../../../../../src/contract/topics.ts';
import { kit_id } from '../../../../support/kit/hub-lab.ts';
import { eventually } from '../../../../support/eventually.ts';
import {
  assets,
  beat,
  clock,
  contacts,
  keyOf,
  lab,
  live,
  open,
  receive,
  registry,
  show,
  uidOf,
  useRegistry,
  link,
} from './registry-lab.ts';

useRegistry();

describe('Vehicles seen once', () => {
  it('are neither announced nor kept at 120 every 5 s, and a real one among them is announced', () => {
    open();
    let uid = 0x1000;
    for (let round = 0; round < 50; round += 1) {
      for (let n = 0; n < 120; n += 1) {
        uid += 1;
        show(`10.0.${n % 8}.${n}:${20_000 + round}`, (n % 250) + 1, uid);
      }
      expect(contacts()).toBeLessThanOrEqual(contacts_max);
      for (let step = 0; step < 5; step += 1) {
        clock.now_ms += 1_000;
        registry.tick(clock.now_ms);
      }
    }
    expect(assets()).toEqual([]);
    expect(registry.vehicles).toEqual([]);
    live('10.9.9.9:14550', 7, 0xc0ffee);
    expect(assets()).toEqual([keyOf(0xc0ffee)]);
    clock.now_ms += 20_000;
    registry.tick(clock.now_ms);
    expect(contacts()).toBe(1);
  });
});

describe('A sender with an id that stands for all', () => {
  it('is no vehicle, since a command to it would be for each vehicle on the link, and is logged once', () => {
    open();
    for (let beats = 0; beats < 15; beats += 1) {
      receive('10.9.9.8:14550', 0, 'HEARTBEAT', beat);
      receive('10.9.9.9:14550', { sysid: 7, compid: 0 }, 'HEARTBEAT', beat);
      clock.now_ms += 1_000;
      registry.tick(clock.now_ms);
    }
    expect(assets()).toEqual([]);
    expect(contacts()).toBe(0);
    expect(lab.log.at('error')).toEqual([texts.id_of_all]);
  });
});

describe('Vehicles that keep sending', () => {
  it('are limited in number, but a configured vehicle always has a slot', () => {
    open({ [keyOf(0xc0ffee)]: { name: 'Falcon' } });
    for (let n = 0; n < 200; n += 1) live(`10.1.${n}.1:14550`, (n % 250) + 1, 0x2000 + n);
    expect(assets().length).toBeLessThanOrEqual(vehicles_max);
    live('10.9.9.9:14550', 7, 0xc0ffee);
    expect(assets()).toContain(keyOf(0xc0ffee));
    expect(lab.log.at('error')).toEqual([texts.limit_reached]);
  });

  it('and become known at the same moment are announced a few at a time, and all of them within two seconds', () => {
    open();
    const flood = 60;
    const at_once = 4;
    const showAll = (): void => {
      for (let n = 0; n < flood; n += 1) show(`10.1.${n}.1:14550`, n + 1, 0x2000 + n);
    };
    showAll();
    clock.now_ms += 600;
    showAll();
    for (let turns = 1; turns <= 20; turns += 1) {
      expect(assets().length).toBeLessThanOrEqual(turns * at_once);
      clock.now_ms += 100;
      registry.tick(clock.now_ms);
    }
    expect(assets().length).toBe(flood);
    expect(lab.log.at('error')).toEqual([]);
  });

  it('of one source are limited, so that another source is always served', () => {
    open();
    for (let n = 0; n < 250; n += 1) show(`10.1.1.1:${10_000 + n}`, n + 1, 0x3000 + n);
    expect(contacts()).toBe(source_contacts_max);
    live('10.9.9.9:14550', 7, 0xc0ffee);
    expect(assets()).toEqual([keyOf(0xc0ffee)]);
  });

  it('of many sources, each with many new identities, do not keep a source with one vehicle from its slot', () => {
    open();
    let uid = 0x6000;
    for (let beats = 0; beats < 4; beats += 1) {
      show('10.9.9.9:14550', 251, 0xc0ffee);
      for (let n = 0; n < 320; n += 1) {
        uid += 1;
        show(`10.1.${n % 40}.1:14550`, (uid % 250) + 1, uid);
        clock.now_ms += 3;
      }
      registry.tick(clock.now_ms);
    }
    expect(assets()).toContain(keyOf(0xc0ffee));
    expect(contacts()).toBeLessThanOrEqual(contacts_max);
  });

  it('under the identity of one vehicle, from many sources, do not keep another one from its slot', () => {
    open({ [keyOf(0xc0ffee)]: { name: 'Falcon' } });
    live('10.2.2.2:14550', 8, 0x7000);
    for (let round = 0; round < 3; round += 1) {
      for (let n = 0; n < 300; n += 1) show(`10.1.${n % 40}.1:${20_000 + n}`, 8, 0x7000);
      clock.now_ms += 600;
    }
    live('10.9.9.9:14550', 7, 0xc0ffee, 3);
    expect(assets()).toContain(keyOf(0xc0ffee));
  });

  it.each([
    { times: 'once', beats: 1 },
    { times: '4 times', beats: 4 },
  ])(
    'from ever new sources, seen $times, keep neither a known nor a configured vehicle away',
    ({ beats }) => {
      open({ [keyOf(0xc0ffee)]: { name: 'Falcon' } });
      live('10.9.9.8:14550', 8, 0x7000);
      const step_ms = 20;
      const new_per_step = 12 / beats;
      let newest = 0x10_000;
      const sendAs = (n: number): void =>
        receive(`10.${(n >> 16) & 63}.${(n >> 8) & 255}.${n & 255}:14550`, (n % 250) + 1, 'HEARTBEAT', beat);
      const isAnnounced = (): boolean => assets().includes(keyOf(0xc0ffee));
      for (let ms = 0; ms < 15_000 && !isAnnounced(); ms += step_ms) {
        for (let n = 0; n < new_per_step; n += 1) {
          newest += 1;
          for (let earlier = 0; earlier < beats; earlier += 1)
            sendAs(newest - (earlier * 600 * new_per_step) / step_ms);
        }
        if (ms % 1_000 === 0) receive('10.9.9.8:14550', 8, 'HEARTBEAT', beat);
        if (ms % 1_000 === 700) receive('10.9.9.9:14550', 7, 'HEARTBEAT', beat);
        // The answer to the request of its identity comes late.
        const identity = autopilotVersion(uidOf(0xc0ffee));
        if (ms % 1_000 === 300) receive('10.9.9.9:14550', 7, 'AUTOPILOT_VERSION', identity);
        clock.now_ms += step_ms;
        if (ms % 500 === 0) registry.tick(clock.now_ms);
      }
      expect(isAnnounced()).toBe(true);
      expect(contacts()).toBeLessThanOrEqual(contacts_max);
      expect(registry.vehicles.find(({ asset_key }) => asset_key === keyOf(0x7000))?.online).toBe(true);
    },
  );

  it('cannot change their identity with each message', () => {
    open();
    live('10.1.1.1:14550', 7, 0x4000);
    for (let n = 1; n < 1_000; n += 1) {
      show('10.1.1.1:14550', 7, 0x4000 + n);
      clock.now_ms += 10;
      registry.tick(clock.now_ms);
    }
    expect(assets().length).toBeLessThanOrEqual(4);
  });
});

describe('A vehicle that describes itself otherwise with each message', () => {
  it('is announced again a few times a minute, and so is its camera', () => {
    open();
    live('10.9.9.9:14550', 7, 0xc0ffee);
    const own = { sysid: 7, compid: 100 };
    receive('10.9.9.9:14550', own, 'HEARTBEAT', { ...beat, type: 30, autopilot: 8 });
    const keys = [keyOf(0xc0ffee), `${keyOf(0xc0ffee)}:component-100`];
    const announcements = (): number[] =>
      keys.map((key) => lab.outbox.on(channels.asset(assetId(kit_id, key))).length);
    const describe = (n: number): void => {
      receive('10.9.9.9:14550', 7, 'AUTOPILOT_VERSION', autopilotVersion(uidOf(0xc0ffee), n << 8));
      receive('10.9.9.9:14550', own, 'COMPONENT_INFORMATION_BASIC', {
        ...blank('COMPONENT_INFORMATION_BASIC'),
        model_name: `Eye ${n}`,
      });
    };
    for (let n = 1; n <= 500; n += 1) describe(n);
    for (const count of announcements()) expect(count).toBeLessThan(10);
    expect(Math.min(...announcements())).toBeGreaterThan(1);
    clock.now_ms += 60_001;
    const before = announcements();
    receive('10.9.9.9:14550', 7, 'HEARTBEAT', beat);
    describe(501);
    expect(announcements()).not.toEqual(before);
  });
});

describe('A stranger at another address with the ids of a vehicle', () => {
  const [own, other] = ['10.9.9.9:14550', '10.6.6.6:14550'];
  const key = keyOf(0xc0ffee);
  const active = (): string | undefined =>
    registry.vehicles.find(({ asset_key }) => asset_key === key)?.active.peer;
  const alarms = (): unknown => {
    const channel = channels.feed(assetId(kit_id, key), 'sys_status');
    return lab.outbox.drafts.findLast((draft) => draft.channel === channel)?.data?.['alarms'];
  };
  const addressLines = (): string[] => lab.log.at('warn').filter((text) => text.includes('address'));

  it('is not used while the vehicle is silent, is used with an alarm while it is lost, and is left when it returns', async () => {
    open();
    live(own, 7, 0xc0ffee);
    live(other, 7, 0xc0ffee);
    live(own, 7, 0xc0ffee);
    expect(addressLines()).toEqual([texts.address_ignored]);
    live(other, 7, 0xc0ffee, 4);
    expect(active()).toBe(own);
    live(other, 7, 0xc0ffee, 3);
    expect(active()).toBe(other);
    const changed = texts.address_changed('10.6.6.6');
    expect(addressLines()).toContain(changed);
    await eventually('the alarm', () => JSON.stringify(alarms()) === JSON.stringify([changed]));
    live(own, 7, 0xc0ffee);
    expect(active()).toBe(own);
    live(other, 7, 0xc0ffee, 1);
    live(own, 7, 0xc0ffee);
    expect(active()).toBe(own);
    await eventually('its end', () => alarms() === undefined);
  });

  it('does not keep the vehicle from its place with another system id', () => {
    open();
    live(own, 7, 0xc0ffee);
    clock.now_ms += 6_000;
    registry.tick(clock.now_ms);
    live(other, 9, 0xc0ffee, 3);
    expect(active()).toBe(other);
    live(own, 7, 0xc0ffee, 1);
    expect(active()).toBe(own);
    expect(assets()).toEqual([key]);
  });

  it('makes no answer of the vehicle doubtful with the ids of this kit', () => {
    open();
    live(own, 7, 0xc0ffee);
    const hasRival = (): boolean | undefined => registry.vehicles[0]?.active.hasRival;
    const kit = { sysid: 245, compid: 191 };
    receive(other, kit, 'HEARTBEAT', beat);
    expect(lab.log.at('error')).toEqual([texts.rival]);
    expect(hasRival()).toBe(false);
    for (let n = 0; n < 200; n += 1) receive(`10.6.7.${n}:14550`, kit, 'HEARTBEAT', beat);
    expect(lab.log.at('error')).toEqual([texts.rival]);
    receive(own, kit, 'HEARTBEAT', beat);
    expect(hasRival()).toBe(true);
  });

  it('is not what the configuration names: a second link of the vehicle, to which commands move at once', () => {
    open();
    live(own, 7, 0xc0ffee);
    live('/dev/ttyUSB0', 7, 0xc0ffee, 3);
    expect(active()).toBe('/dev/ttyUSB0');
    expect(addressLines()).toEqual([]);
  });

  it('is taken for the vehicle when nothing else was for ten minutes', () => {
    open();
    live(own, 7, 0xc0ffee, 70);
    live(other, 7, 0xc0ffee, 610);
    live(own, 7, 0xc0ffee);
    expect(active()).toBe(other);
  });

  it('is left for the vehicle that returns within ten minutes', () => {
    open();
    live(own, 7, 0xc0ffee, 70);
    live(other, 7, 0xc0ffee, 560);
    live(own, 7, 0xc0ffee);
    expect(active()).toBe(own);
  });

  it.each(['10.9.9.9:14550', '[::ffff:10.9.9.9]:14550', '/dev/ttyUSB0'])(
    'keeps a vehicle whose hosts are configured from none of them, nor from a serial line: %s',
    (from) => {
      open({ [key]: { hosts: ['10.9.9.9'] } });
      live(other, 7, 0xc0ffee, 3);
      live(from, 7, 0xc0ffee);
      expect([assets(), active()]).toEqual([[key], from]);
    },
  );

  it('is not received as a vehicle whose hosts are configured', () => {
    open({ [key]: { hosts: ['10.9.9.9'] } });
    live(other, 7, 0xc0ffee, 12);
    expect(assets()).toEqual([]);
    expect(addressLines()).toEqual([texts.address_refused]);
    live(own, 7, 0xc0ffee);
    expect(assets()).toEqual([key]);
    live(other, 7, 0xc0ffee, 8);
    expect(active()).toBe(own);
  });

  it('speaks for none of its components', () => {
    open();
    live(own, 7, 0xc0ffee);
    live(other, 7, 0xc0ffee);
    const camera = { sysid: 7, compid: 100 };
    receive(own, camera, 'HEARTBEAT', { ...beat, type: 30, autopilot: 8 });
    const claimed = { ...blank('COMPONENT_INFORMATION_BASIC'), vendor_name: 'Stranger', model_name: 'Eye' };
    receive(other, camera, 'COMPONENT_INFORMATION_BASIC', claimed);
    expect(JSON.stringify(lab.outbox.drafts)).not.toContain('Stranger');
  });
});

describe('Texts that differ each time', () => {
  it('are limited to 20 log lines of one vehicle, and not logged for unannounced ones', () => {
    open();
    const sendText = (peer: string, sysid: number, n: number): void =>
      receive(peer, sysid, 'STATUSTEXT', {
        severity: 2,
        text: `\u202Egarbage\u009B ${n}`,
        id: 0,
        chunk_seq: 0,
      });
    for (let n = 0; n < 3_000; n += 1) {
      show(`10.1.${n % 100}.1:14550`, (n % 250) + 1, 0x5000 + n);
      sendText(`10.1.${n % 100}.1:14550`, (n % 250) + 1, n);
    }
    expect(lab.log.at('warn')).toEqual([]);
    live('10.9.9.9:14550', 7, 0xc0ffee, 4);
    for (let n = 0; n < 3_000; n += 1) sendText('10.9.9.9:14550', 7, n);
    expect(lab.log.at('warn')).toHaveLength(20);
    expect(lab.log.at('warn').at(-1)).toBe(texts.texts_suppressed);
  });
});

useRegistry();

// mavlink#2310, qgroundcontrol#7225; PX4-Autopilot#14178 simulates 255.
it.each([
  { vehicles: 40, shown: 40 },
  { vehicles: source_contacts_max, shown: source_contacts_max },
  { vehicles: 100, shown: source_contacts_max },
])('Of $vehicles vehicles behind one router $shown are shown', ({ vehicles, shown }) => {
  open();
  for (let second = 0; second < 12; second += 1) {
    for (let n = 1; n <= vehicles; n += 1) show('10.1.1.1:14550', n, 0x1000 + n);
    for (let tick = 0; tick < 10; tick += 1) {
      clock.now_ms += 100;
      registry.tick(clock.now_ms);
    }
  }
  expect(assets()).toHaveLength(shown);
  const isFull = vehicles > shown;
  expect(registry.refusalAt(link, clock.now_ms)).toBe(
    isFull ? texts.more_senders('autopilots', source_contacts_max) : undefined,
  );
  expect(lab.log.at('error')).toEqual(isFull ? [texts.limit_reached] : []);
});
