/** More vehicles behind one address than the kit serves: those that it serves are all there, and the rest is said. */
import { expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/vehicles/texts.ts';
import { source_contacts_max } from '../../../../../drivers/mavlink/vehicles/newcomers.ts';
import { assets, clock, lab, link, open, registry, show, useRegistry } from './registry-lab.ts';

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
