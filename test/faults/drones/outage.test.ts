/** Commands over TCP connections that drop every packet for a while: none acts after its task has ended. */
import { describe, expect, it } from 'vitest';
import { peerMissing, rootMissing } from '../../support/peers.ts';
import { hasActedLate, near, type OutageOutcome, outages } from '../support/outage-scene.ts';

describe.skipIf(rootMissing() || peerMissing('ip', 'nft'))(
  'A command over a TCP connection that is dropped',
  () => {
    it('does not reach the vehicle after it was reported as failed', async () => {
      const arm = { command: 'arm', airborne: false };
      const done = await outages([
        { ...arm, outage_ms: 6_500 },
        { ...arm, outage_ms: 9_000 },
        { ...arm, outage_ms: 12_000 },
        { command: 'goto_waypoint', payload: near, airborne: true, outage_ms: 7_000 },
        { command: 'set_mode', payload: { mode: 'AUTO' }, airborne: true, outage_ms: 10_000 },
        { command: 'return_home', airborne: true, outage_ms: 8_000 },
        { ...arm, outage_ms: 1_500 },
      ]);
      expect(done.filter(hasActedLate)).toEqual([]);
      // What arrives early acts once and is seen to; what is dropped for its whole time fails. Between them the kernel's next
      // retransmission decides: the command, the heartbeats or the sight of the effect may come too late.
      expect(done.at(-1)).toMatchObject({ error: undefined });
      expect(done.filter((each) => !isTrue(each))).toEqual([]);
      const long = done.filter(({ outage_ms }) => outage_ms >= 10_000);
      expect(long.every(({ error }) => error !== undefined)).toBe(true);
    });
  },
);

/** Whether the end of a task says what its vehicle did. */
function isTrue({ error, acted }: OutageOutcome): boolean {
  if (error === undefined) return acted.length === 1;
  return error.endsWith('; command not sent')
    ? acted.length === 0
    : error.endsWith('; outcome unknown') && acted.length <= 1;
}
