/** A hundred commands over TCP connections that drop every packet for 0.5 to 18 s: none acts after its task has ended. */
import { describe, expect, it } from 'vitest';
import { peerMissing, rootMissing } from '../../support/peers.ts';
import { hasActedLate, near, type Outage, type OutageOutcome, outages } from '../support/outage-scene.ts';

const outages_max = 100;
const at_once = 10;

const commands: readonly Omit<Outage, 'outage_ms'>[] = [
  { command: 'arm', airborne: false },
  { command: 'goto_waypoint', payload: near, airborne: true },
  { command: 'set_mode', payload: { mode: 'AUTO' }, airborne: true },
  { command: 'return_home', airborne: true },
  { command: 'set_mode', payload: { mode: 'GUIDED' }, airborne: true },
];

describe.skipIf(rootMissing() || peerMissing('ip', 'nft'))('Commands over dropped TCP connections', () => {
  it(`reach no vehicle after their tasks have ended, in ${outages_max} outages`, async () => {
    const done: OutageOutcome[] = [];
    while (done.length < outages_max) {
      const list = Array.from({ length: at_once }, (_, index): Outage => {
        const number = done.length + index;
        const about = commands[number % commands.length] ?? { command: 'arm', airborne: false };
        return { ...about, outage_ms: 500 + (number * 17_500) / outages_max };
      });
      done.push(...(await outages(list)));
    }
    const late = done.filter(hasActedLate);
    const failed = done.filter(({ error }) => error !== undefined).length;
    const back = done.map(({ back_after_ms }) => back_after_ms).toSorted((a, b) => a - b);
    console.info(
      `${done.length} outages: ${failed} failed, ${late.length} acted after their report; online again after ${Math.round(back[Math.floor(back.length / 2)] ?? 0)} ms (median), ${Math.round(back.at(-1) ?? 0)} ms (longest)`,
    );
    expect(late).toEqual([]);
  });
});
