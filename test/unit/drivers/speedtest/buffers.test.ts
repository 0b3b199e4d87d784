/**
 * What the buffers of the kernel hold of an upload. In real time: the kernel asks a receiver that was full again after 200 ms, of which
 * virtual time knows nothing.
 */
import { expect, it } from 'vitest';
import { speedtest } from '../../../../drivers/speedtest/speedtest.ts';
import { startSpeedServer } from '../../../fakes/services/fake-speed-server.ts';
import { driverLab } from '../../../support/drivers/driver-lab.ts';

it('counts of an upload that was answered before it was read what has left', { tags: 'long' }, async () => {
  const server = await startSpeedServer();
  server.manner = 'hasty';
  server.bytes_per_s = 1_000_000;
  const at = {
    name: 'near',
    download_url: `${server.origin}/down?bytes={bytes}`,
    upload_url: `${server.origin}/up`,
  };
  const limits = { bytes_max: 40_000_000, seconds_max: 2, connections: 1 };
  const lab = driverLab(speedtest, { servers: [at], ...limits });
  await lab.until('the command', () => lab.shown.commands.length === 1);
  const result = await lab.shown.commands[0]
    ?.read({ link: 'lo' })
    .run({ signal: new AbortController().signal, progress: () => undefined, remaining_ms: () => 60_000 });
  // 5.6 MB where the buffers of this machine count, of 2.3 MB that were read.
  expect(result?.['bytes_up']).toBeLessThanOrEqual(server.moved.up);
  await lab.stop();
  await server.stop();
});
