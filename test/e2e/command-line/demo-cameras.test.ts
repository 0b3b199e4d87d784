/** The cameras and the radio of `npm start`: the cameras see somebody and can be panned, the radio tells of its link. */
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { startChild } from '../../support/child.ts';
import { type Cloud, startCloud } from '../../support/kit/cloud.ts';
import { command_file } from '../../support/kit/kit.ts';
import { withDirectory } from '../../support/temporary.ts';

const start_ms = 25_000;

it('the demo shows two cameras that detect a person and can be panned', async () => {
  await withDirectory(async (dir) => {
    await withDemo(dir, async (cloud) => {
      for (const protocol of ['onvif', 'vendorcam']) {
        const announced = await cloud.until(
          `the ${protocol} camera is announced`,
          ({ channel, data }) => /^asset\/[^/]+$/u.test(channel) && data?.['protocol'] === protocol,
        );
        expect(announced.data).toMatchObject({ type: 'camera', status: 'online' });
        const asset_id = announced.channel.replace('asset/', '');
        await cloud.until(
          'it sees motion',
          ({ channel, data }) => channel === `event/${asset_id}/motion` && data?.['detected'] === true,
          30_000,
        );
        expect(await pan(cloud, asset_id)).toMatchObject({ status: 'completed' });
      }
    });
  });
});

async function pan(cloud: Cloud, asset_id: string) {
  const task_id = randomUUID();
  const created_at = new Date().toISOString();
  const payload = { direction: 'left' };
  const dispatch = { task_id, asset_id, command_name: 'ptz_move', payload, created_at };
  await cloud.send({ kind: 'task', task_id }, dispatch);
  const over = await cloud.until(
    'the task is over',
    ({ channel, data }) =>
      channel === `task/${task_id}` && (data?.['status'] === 'completed' || data?.['status'] === 'failed'),
    20_000,
  );
  return over.data;
}

async function withDemo(state_home: string, play: (cloud: Cloud) => Promise<void>): Promise<void> {
  const demo = startChild([command_file, 'demo'], { env: { XDG_STATE_HOME: state_home } });
  try {
    await demo.printed(/Published messages \(Ctrl-C stops\):/, start_ms);
    const [, kit_id = '', url = ''] =
      /Demo kit (\S+): this machine is the gateway and publishes to (mqtt:\S+) /.exec(demo.output()) ?? [];
    const cloud = await startCloud(url, kit_id, { protocolVersion: 4 });
    await play(cloud);
    await cloud.leave();
  } finally {
    await demo.end('SIGINT');
  }
}
