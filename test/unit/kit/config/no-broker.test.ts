/** A kit that has no broker yet: it works, keeps everything and says what is missing. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createLog } from '../../../../src/platform/log/log.ts';
import { vouched, systemClock } from '../../../../src/platform/clock.ts';
import { startApp } from '../../../../src/kit/app/app.ts';
import { no_broker } from '../../../../src/kit/config/broker.ts';
import { eventually } from '../../../support/eventually.ts';
import { testDirectory } from '../../../support/test-directory.ts';
import { kit_id, readText } from './lab.ts';

const text = `kit_id: ${kit_id}\nbroker:\n  url: none\n`;

test('"none" is accepted as the address of the broker, with a warning that names key, file and remedy', async () => {
  const dir = await testDirectory();
  const config = await readText(dir, text);
  expect(config.broker?.url).toBe(no_broker);
  expect(config.warnings).toEqual([
    `no broker is configured, messages are buffered: set broker.url in ${join(dir, 'config.yaml')}, then restart kit-connector`,
  ]);
});

test('the app runs without a broker, connects nowhere and reports why messages are buffered', async () => {
  const dir = await testDirectory();
  const config = await readText(dir, `${text}state_dir: ${dir}\nruntime_dir: ${dir}\n`);
  const { broker } = config;
  if (broker === undefined) throw new Error('the section is there');
  const log = createLog({ level: 'fatal', out: { write: () => true }, readable: false });
  const app = await startApp(config, {
    log,
    clock: systemClock({ evidence: vouched }),
    version: '0.0.0',
    broker,
  });
  try {
    await eventually('the report', async () => (await app.local.report()).uplink.state === 'stopped');
    const report = await app.local.report();
    expect(report.uplink).toMatchObject({ attempts: 0, broker: 'none' });
    expect(report.degraded.join('\n')).toContain('no broker is configured');
  } finally {
    await app.stop();
  }
});
