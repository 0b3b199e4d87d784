/** The drone of `npm start`: it is announced with its commands, and a task that is sent to it is carried out. */
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { startChild } from '../../support/child.ts';
import { startCloud } from '../../support/kit/cloud.ts';
import { command_file } from '../../support/kit/kit.ts';
import { withDirectory } from '../../support/temporary.ts';

it('a newcomer sees a drone fly and can dispatch a task to it', async () => {
  await withDirectory(async (dir) => {
    const demo = startChild([command_file, 'demo'], { env: { XDG_STATE_HOME: dir } });
    try {
      await demo.printed(/Published messages \(Ctrl-C stops\):/, 25_000);
      const [, kit_id = '', url = ''] =
        /Demo kit (\S+): this machine is the gateway and publishes to (mqtt:\S+) /.exec(demo.output()) ?? [];
      const cloud = await startCloud(url, kit_id, { protocolVersion: 4 });
      const announced = await cloud.until(
        'a drone is announced',
        ({ channel, data }) => /^asset\/[^/]+$/u.test(channel) && data?.['type'] === 'drone',
      );
      const asset_id = announced.channel.replace('asset/', '');
      await cloud.until(
        'it can be sent home',
        ({ channel, data }) =>
          channel === `asset/${asset_id}/commands` && JSON.stringify(data).includes('return_home'),
      );
      await cloud.until(
        'it flies',
        ({ channel, data }) => channel === `feed/${asset_id}/sys_status` && data?.['armed'] === true,
      );
      const task_id = randomUUID();
      const created_at = new Date().toISOString();
      const dispatch = { task_id, asset_id, command_name: 'return_home', payload: {}, created_at };
      await cloud.send({ kind: 'task', task_id }, dispatch);
      const done = await cloud.until(
        'the task is over',
        ({ channel, data }) =>
          channel === `task/${task_id}` &&
          (data?.['status'] === 'completed' || data?.['status'] === 'failed'),
      );
      expect(done.data).toMatchObject({ status: 'completed', result: { flight_mode: 'RTL' } });
      await cloud.leave();
    } finally {
      await demo.end('SIGINT');
    }
  });
});
