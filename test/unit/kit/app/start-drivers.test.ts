/** A kit answers before the code of its drivers is loaded. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startApp } from '../../../../src/kit/app/app.ts';
import { vouched, systemClock } from '../../../../src/platform/clock.ts';
import { createLog } from '../../../../src/platform/log/log.ts';
import { aborted } from '../../../../src/platform/time.ts';
import { eventually } from '../../../support/eventually.ts';
import { testDirectory } from '../../../support/test-directory.ts';
import { kit_id, probe, readText } from '../config/lab.ts';

test('drivers start on request, and the kit answers without them until then', async () => {
  const dir = await testDirectory();
  const text = `kit_id: ${kit_id}\nbroker: { url: none }\nstate_dir: ${dir}\nruntime_dir: ${join(dir, 'run')}\n`;
  const config = await readText(dir, text);
  if (!config.broker) throw new Error('the section is there');
  const { broker } = config;
  const started: string[] = [];
  const run = async ({ signal }: { readonly signal: AbortSignal }): Promise<void> => {
    started.push('own');
    await aborted(signal);
  };
  const drivers = [{ name: 'own', driver: probe, options: {}, raw: {}, run }];
  const log = createLog({ level: 'fatal', out: { write: () => true }, readable: false });
  const clock = systemClock({ evidence: vouched });
  const app = await startApp({ ...config, drivers }, { log, clock, version: '0.0.0', broker });
  try {
    const before = await app.local.report();
    expect(before.outbox.balanced).toBe(true);
    expect(started).toEqual([]);
    app.startDrivers();
    await eventually('the driver', () => started.length === 1);
  } finally {
    await app.stop();
  }
});
