/** Forty kits over thirty days with outages, on each database. */
import { expect, it } from 'vitest';
import { onEachDatabase } from '../each-database.ts';
import { replayFleet } from './replay.ts';

const minutes = 60_000;
/** `KIT_CONNECTOR_REPLAY=40x10`: other kits and days. */
const [kits = 0, days = 0] = (process.env['KIT_CONNECTOR_REPLAY'] ?? '40x30').split('x').map(Number);

onEachDatabase('the replay of forty kits over thirty days', (open) => {
  it(
    'opens and closes alarms exactly as a reference computes them, and none from late data',
    async () => {
      const alarms = await replayFleet(await open(), { kits, days });
      console.log(`${alarms} alarms, each as the reference computes it`);
      expect(alarms).toBeGreaterThan(kits * days * 3);
    },
    60 * minutes,
  );
});
