/** The cameras and the radio of `npm start`: the cameras see somebody and can be panned, the radio tells of its link. */
import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
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

it('a newcomer sees a radio with its feeds', async () => {
  await withDirectory(async (dir) => {
    await withDemo(dir, async (cloud) => {
      const announced = await cloud.until(
        'the radio is announced',
        ({ channel, data }) => /^asset\/[^/]+$/u.test(channel) && data?.['protocol'] === 'vendorradio',
      );
      expect(announced.data).toMatchObject({ type: 'radio', status: 'online', name: 'Mast radio' });
      const asset_id = announced.channel.replace('asset/', '');
      const feed = async (name: string, known: string) => {
        const told = await cloud.until(
          `its feed ${name}`,
          ({ channel, data }) => channel.endsWith(`/${asset_id}/${name}`) && data?.[known] !== null,
          30_000,
        );
        return told.data;
      };
      expect(await feed('radio', 'rssi')).toMatchObject({ peer: '02:00:00:aa:bb:02' });
      expect(await feed('link', 'tx_bps')).toMatchObject({ channel: 36, peers: 1 });
      expect(await feed('mesh', 'protocol')).toMatchObject({ protocol: '80211s' });
      expect(await feed('status', 'uptime_s')).toMatchObject({ online: true, source: 'iwinfo' });
    });
  });
});

it('a demo whose configuration is older than the cameras runs without them', async () => {
  await withDirectory(async (dir) => {
    await withDemo(dir, async () => undefined);
    const file = join(dir, 'kit-connector-demo', 'config.yaml');
    const text = await readFile(file, 'utf8');
    const older = text
      .replace(/ {2}# The demo simulates[^]*?(?=^feeds:)/mu, '')
      .replace(/ {2}# The simulated camera and radio.*\n.*\n/u, '');
    expect(older).not.toContain('onvif');
    await writeFile(file, older);
    await withDemo(dir, async (cloud) => {
      await cloud.until('telemetry', ({ channel }) => channel === 'telemetry');
      const cameras = cloud.on('asset/').filter(({ data }) => data?.['type'] === 'camera');
      expect(cameras.filter(({ data }) => data?.['status'] === 'online')).toEqual([]);
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
