/** Commands over TCP connections that drop every packet for a while: none acts after its task has ended. */
import { describe, expect, it } from 'vitest';
import { peerMissing, rootMissing } from '../../support/peers.ts';
import { near, outages } from '../support/outage-scene.ts';

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
      const late = done.filter(({ acted_ms, reported_ms }) => acted_ms.some((ms) => ms > reported_ms));
      expect(late).toEqual([]);
      // The connection is dropped for less time than the command waits: it arrives, and is seen to act.
      expect(done.at(-1)).toMatchObject({ error: undefined });
      expect(done.slice(0, -1).every(({ error }) => error !== undefined)).toBe(true);
    });
  },
);
