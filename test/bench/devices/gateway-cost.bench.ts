/** What watching the gateway costs it: the drivers of the gateway against systeminformation, each in a process of its own. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { z } from 'zod';
import type { Bench, BenchContext, Figure } from '../figure.ts';
import { node_flags } from '../support/subject.ts';

const gatewayCost = z.strictObject({
  names: z.array(z.string()).readonly().describe('what was run'),
  cpu_pct: z.number().describe('percent of one core, children included'),
  turn_max_ms: z.number().describe('longest turn of the event loop, in processor time of its thread'),
});
export type GatewayCost = z.output<typeof gatewayCost>;

const patience_ms = 30_000;

async function measure(side: 'family' | 'systeminformation', seconds: number): Promise<GatewayCost> {
  const entry = new URL('../processes/gateway-cost-process.ts', import.meta.url).pathname;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [...node_flags, entry, side, String(seconds)],
    {
      timeout: 2 * seconds * 1_000 + patience_ms,
    },
  );
  return gatewayCost.parse(JSON.parse(stdout.trim().split('\n').at(-1) ?? ''));
}

async function run({ long, say, calm }: BenchContext): Promise<readonly Figure[]> {
  const seconds = long ? 120 : 30;
  await calm();
  const family = await measure('family', seconds);
  say(`drivers: ${family.names.join(', ')}`);
  await calm();
  const library = await measure('systeminformation', seconds);
  const against = 'systeminformation at 1 Hz';
  return [
    {
      figure: 'cpu_pct',
      value: family.cpu_pct,
      unit: '% of one core',
      against,
      against_value: library.cpu_pct,
      target: '< 1',
    },
    {
      figure: 'turn_max_ms',
      value: family.turn_max_ms,
      unit: 'ms',
      against,
      against_value: library.turn_max_ms,
      target: '< 20',
    },
  ];
}

export const bench: Bench = { name: 'gateway-cost', run };
