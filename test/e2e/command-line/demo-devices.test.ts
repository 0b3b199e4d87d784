/** The devices of `npm start`: a drone that flies, and cameras that see somebody. Tasks that are sent to them are carried out. */
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type { JsonObject } from '../../../src/contract/json.ts';
import { startChild } from '../../support/child.ts';
import { type Cloud, startCloud } from '../../support/kit/cloud.ts';
import { command_file } from '../../support/kit/kit.ts';
import { withDirectory } from '../../support/temporary.ts';

it('a newcomer sees a drone fly and two cameras detect a person, and can dispatch tasks to them', async () => {
  await withDirectory(async (dir) => {
    const demo = startChild([command_file, 'demo'], { env: { XDG_STATE_HOME: dir } });
    try {
      await demo.printed(/Published messages \(Ctrl-C stops\):/, 25_000);
      const [, kit_id = '', url = ''] =
        /Demo kit (\S+): this machine is the gateway and publishes to (mqtt:\S+) /.exec(demo.output()) ?? [];
      const cloud = await startCloud(url, kit_id, { protocolVersion: 4 });
      const drone = await announced(cloud, 'a drone', (data) => data['type'] === 'drone');
      await cloud.until(
        'it can be sent home',
        ({ channel, data }) =>
          channel === `asset/${drone}/commands` && JSON.stringify(data).includes('return_home'),
      );
      await cloud.until(
        'it flies',
        ({ channel, data }) => channel === `feed/${drone}/sys_status` && data?.['armed'] === true,
      );
      expect(await outcome(cloud, drone, 'return_home', {})).toMatchObject({
        status: 'completed',
        result: { flight_mode: 'RTL' },
      });
      for (const protocol of ['onvif', 'vendorcam']) {
        const camera = await announced(cloud, protocol, (data) => data['protocol'] === protocol);
        await cloud.until(
          'it sees motion',
          ({ channel, data }) => channel === `event/${camera}/motion` && data?.['detected'] === true,
          30_000,
        );
        const moved = await outcome(cloud, camera, 'ptz_move', { direction: 'left' });
        expect(moved).toMatchObject({ status: 'completed' });
      }
      await cloud.leave();
    } finally {
      await demo.end('SIGINT');
    }
  });
});

async function announced(cloud: Cloud, what: string, fits: (data: JsonObject) => boolean): Promise<string> {
  const { channel } = await cloud.until(
    `${what} is announced`,
    (each) => /^asset\/[^/]+$/u.test(each.channel) && fits(each.data ?? {}),
  );
  return channel.replace('asset/', '');
}

async function outcome(cloud: Cloud, asset_id: string, command_name: string, payload: JsonObject) {
  const task_id = randomUUID();
  const created_at = new Date().toISOString();
  await cloud.send({ kind: 'task', task_id }, { task_id, asset_id, command_name, payload, created_at });
  const over = await cloud.until(
    'the task is over',
    ({ channel, data }) =>
      channel === `task/${task_id}` && (data?.['status'] === 'completed' || data?.['status'] === 'failed'),
    20_000,
  );
  return over.data;
}
