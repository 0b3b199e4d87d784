/** Components of vehicles on an open network, on which anyone can claim to be one. */
import { describe, expect, it } from 'vitest';
import { blank } from '../../../../../drivers/mavlink/wire/messages.ts';

import {
  assets,
  beat,
  clock,
  keyOf,
  lab,
  live,
  open,
  receive,
  registry,
  show,
  useRegistry,
} from './registry-lab.ts';

useRegistry();

describe('Components that a stranger claims for a vehicle', () => {
  const camera = { ...beat, type: 30, autopilot: 8 };
  const parts = (): string[] => assets().filter((key) => key.includes('component'));

  it('are 4 at most, and displace no component that the vehicle or another vehicle carries', () => {
    open();
    live('10.9.9.8:14550', 8, 0x7000);
    live('10.9.9.9:14550', 7, 0xc0ffee);
    for (let compid = 2; compid < 250; compid += 1) {
      for (const sysid of [7, 8]) receive('10.6.6.6:14550', { sysid, compid }, 'HEARTBEAT', camera);
    }
    expect(parts()).toHaveLength(8);
    clock.now_ms += 100;
    receive('10.9.9.9:14550', { sysid: 7, compid: 250 }, 'HEARTBEAT', camera);
    expect(parts()).toContain(`${keyOf(0xc0ffee)}:component-250`);
    for (let compid = 2; compid < 250; compid += 1)
      receive('10.9.9.9:14550', { sysid: 7, compid }, 'HEARTBEAT', camera);
    clock.now_ms += 100;
    receive('10.9.9.8:14550', { sysid: 8, compid: 250 }, 'HEARTBEAT', camera);
    expect(parts()).toContain(`${keyOf(0x7000)}:component-250`);
  });

  it('of many vehicles in the same moment are announced a few at a time', () => {
    open();
    for (let n = 0; n < 20; n += 1) live(`10.1.${n}.1:14550`, n + 1, 0x2000 + n, 1.2);
    const beats = (): void => {
      for (let n = 0; n < 20; n += 1) {
        show(`10.1.${n}.1:14550`, n + 1, 0x2000 + n);
        for (let compid = 100; compid < 104; compid += 1)
          receive(`10.1.${n}.1:14550`, { sysid: n + 1, compid }, 'HEARTBEAT', camera);
      }
    };
    beats();
    beats();
    expect(parts()).toHaveLength(16);
    for (let s = 1; s < 5; s += 1) {
      clock.now_ms += 1_000;
      beats();
    }
    expect(parts()).toHaveLength(80);
  });

  it('speak for none that is received, and make room for the next one once they are offline', () => {
    open();
    live('10.9.9.9:14550', 7, 0xc0ffee);
    const own = { sysid: 7, compid: 100 };
    receive('10.9.9.9:14550', own, 'HEARTBEAT', camera);
    const claimFrom = (peer: string, vendor_name: string): void =>
      receive(peer, own, 'COMPONENT_INFORMATION_BASIC', {
        ...blank('COMPONENT_INFORMATION_BASIC'),
        vendor_name,
        model_name: 'Eye',
      });
    claimFrom('10.6.6.6:14550', 'Stranger');
    claimFrom('10.9.9.9:14550', 'Maker');
    const announced = JSON.stringify(lab.outbox.drafts);
    expect(announced).toContain('Maker');
    expect(announced).not.toContain('Stranger');
    for (let compid = 1; compid <= 4; compid += 1)
      receive('10.6.6.6:14550', { sysid: 7, compid: 200 + compid }, 'HEARTBEAT', camera);
    for (let seconds = 0; seconds < 20; seconds += 1) {
      clock.now_ms += 1_000;
      receive('10.9.9.9:14550', 7, 'HEARTBEAT', beat);
      registry.tick(clock.now_ms);
    }
    receive('10.7.7.7:14550', { sysid: 7, compid: 210 }, 'HEARTBEAT', camera);
    expect(parts()).toContain(`${keyOf(0xc0ffee)}:component-210`);
    expect(parts()).toHaveLength(5);
  });
});
