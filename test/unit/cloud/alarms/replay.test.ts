/** A small replay with each change; the whole one is in the long lane. */
import { expect, it } from 'vitest';
import { onEachDatabase } from '../each-database.ts';
import { replayFleet } from './replay.ts';

onEachDatabase('the replay of a fleet', (open) => {
  it('opens and closes alarms exactly as a reference computes them, and none from late data', async () => {
    expect(await replayFleet(await open(), { kits: 2, days: 1 })).toBeGreaterThan(5);
  });
});
