/** Tasks from the cloud through a real broker to a drone of the rehearsal driver and back, restarts and kills included. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { connectAsync } from 'mqtt';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buffer_file } from '../../../src/kit/app/app.ts';
import { taskReport, type TaskReport } from '../../../src/contract/tasks.ts';
import { startMosquitto, type Broker } from '../../support/brokers/broker.ts';
import type { Child } from '../../support/child.ts';
import type { Cloud } from '../../support/kit/cloud.ts';
import { sleep } from '../../../src/platform/time.ts';
import { eventually } from '../../support/eventually.ts';
import { withKit, type Kit } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';
import { texts } from '../../../src/kit/tasks/texts.ts';

interface Order {
  readonly task_id?: string;
  readonly asset_id?: string;
  readonly command_name?: string;
  readonly payload?: object;
  readonly deadline?: string;
}

interface Scene {
  readonly kit: Kit;
  readonly cloud: Cloud;
  readonly daemon: Child;
  /** Dispatches a task to the drone and answers its id. */
  readonly order: (order: Order, how?: { readonly retain: boolean }) => Promise<string>;
  readonly reports: (task_id: string) => readonly TaskReport[];
  readonly reported: (task_id: string, status: TaskReport['status']) => Promise<TaskReport>;
}

describe.skipIf(peerMissing('mosquitto'))('a task from the cloud', () => {
  let broker: Broker;
  beforeAll(async () => {
    broker = await startMosquitto({ conf: ['log_type debug'] });
  });
  afterAll(async () => {
    await broker.stop();
  });

  async function withScene(play: (scene: Scene) => Promise<void>): Promise<void> {
    await withKit({ rehearsed: true }, async (kit) => {
      await kit.configure({
        broker: { url: broker.url },
        commands: { disabled: [{ asset: 'eagle', command: 'land' }] },
        drivers: [kit.rehearse({ keys: ['falcon', 'eagle'] })],
      });
      const cloud = await kit.listen(broker.url);
      const daemon = await kit.start();
      await online(cloud, kit.drone('eagle'));
      const reports = (task_id: string): readonly TaskReport[] =>
        cloud.on(`task/${task_id}`).map(({ data }) => taskReport.parse(data));
      await play({
        kit,
        cloud,
        daemon,
        reports,
        async order({ task_id = randomUUID(), ...rest }, how) {
          const plain = { asset_id: kit.drone(), command_name: 'work', created_at: new Date().toISOString() };
          await cloud.send({ kind: 'task', task_id }, { task_id, ...plain, ...rest }, how);
          return task_id;
        },
        async reported(task_id, status) {
          await cloud.until(
            `${task_id} ${status}`,
            ({ channel, data }) => channel === `task/${task_id}` && data?.['status'] === status,
          );
          return reports(task_id).find((report) => report.status === status)!;
        },
      });
    });
  }

  async function online(cloud: Cloud, asset_id: string): Promise<void> {
    await cloud.until(
      `${asset_id} online`,
      ({ channel, data }) => channel === `asset/${asset_id}` && data?.['status'] === 'online',
    );
  }

  it('completes with its output and runs once however often it is delivered, or fails with a sentence for the operator', async () => {
    await withScene(async ({ kit, cloud, order, reported, reports }) => {
      const work = { payload: { ms: 200 } };
      const task_id = await order(work);
      const { result } = await reported(task_id, 'completed');
      expect(result).toEqual({ worked_ms: 200 });
      const first = reports(task_id);
      expect(first.map(({ status }) => status)).toEqual(['running', 'running', 'completed']);
      expect(first[1]?.progress).toEqual({ message: 'at it', pct: 50 });
      const revisions = first.map(({ revision }) => revision);
      expect(revisions).toEqual(revisions.toSorted((a, b) => a - b));

      await order({ task_id, ...work });
      await cloud.until('the end again', () => reports(task_id).length > first.length);
      expect(reports(task_id).at(-1)).toEqual(first.at(-1));

      const stranger = randomUUID();
      const late = { created_at: '2026-11-21T10:00:00.000Z', deadline: '2026-11-21T10:00:10.000Z' };
      const refusals: readonly [Order, RegExp][] = [
        [{ asset_id: stranger }, new RegExp(`^this kit has no asset ${stranger}$`)],
        [{ command_name: 'fly' }, /^Drone falcon has no command "fly"; it has work, land, arm$/],
        [{ payload: { ms: -1 } }, /^payload\.ms: /],
        [{ command_name: 'arm' }, /^the drone refuses to arm: compass not calibrated$/],
        [
          { asset_id: kit.drone('eagle'), command_name: 'land' },
          /^land is disabled on this kit by its configuration/,
        ],
        [
          { ...late, payload: { ms: 0 } },
          /^expired: its deadline passed \d+ s ago by the kit's clock; command not sent$/,
        ],
      ];
      for (const [wrong, sentence] of refusals) {
        const { result } = await reported(await order(wrong), 'failed');
        expect(result['error']).toMatch(sentence);
      }
      const garbage = randomUUID();
      await cloud.send({ kind: 'task', task_id: garbage }, 'no JSON at all');
      expect(await reported(garbage, 'failed')).toMatchObject({ asset_id: null, command_name: null });
      expect(kit.effects()).toEqual(['falcon work']);
    });
  });

  it('is refused when the broker kept it, since it would come again at each connect', async () => {
    await withScene(async ({ kit, cloud, daemon, order, reported }) => {
      await daemon.end('SIGTERM');
      const { kit_id } = kit;
      // A session that is gone is one that gets retained messages again.
      await forgetSession(broker.url, kit_id);
      const task_id = await order({ payload: { ms: 0 } }, { retain: true });
      await kit.start();
      const { result } = await reported(task_id, 'failed');
      expect(result['error']).toMatch(/^expired: a retained dispatch is refused/);
      expect(kit.effects()).toEqual([]);
      await cloud.send({ kind: 'task', task_id }, '', { retain: true });
    });
  });

  it('can be cancelled while it runs and while it waits, ends at its deadline, and is superseded by a landing', async () => {
    await withScene(async ({ kit, cloud, order, reported }) => {
      const running = await order({ payload: { ms: 30_000 } });
      await reported(running, 'running');
      const waiting = await order({ payload: { ms: 30_000 } });
      await cloud.send({ kind: 'cancel', task_id: waiting }, '');
      expect((await reported(waiting, 'failed')).result).toEqual({ error: texts.cancelled_early });
      await cloud.send({ kind: 'cancel', task_id: running }, { reason: 'changed my mind' });
      expect((await reported(running, 'failed')).result).toEqual({ error: 'cancelled while running' });
      const soon = new Date(Date.now() + 1_000).toISOString();
      const long = await order({ payload: { ms: 30_000 }, deadline: soon });
      expect((await reported(long, 'failed')).result['error']).toMatch(/deadline/);
      const replaced = [await order({ payload: { ms: 30_000 } }), await order({ payload: { ms: 30_000 } })];
      await reported(replaced[0] ?? '', 'running');
      const landing = await order({ command_name: 'land' });
      expect((await reported(landing, 'completed')).result).toEqual({ landed: true });
      for (const task_id of replaced)
        expect((await reported(task_id, 'failed')).result['error']).toMatch(/^superseded by land/);
      expect(kit.effects()).toEqual(['falcon work', 'falcon work', 'falcon work', 'falcon land']);
    });
  });

  it('is acknowledged to the broker only once it is on disk: after a kill in between it comes again and runs once', async () => {
    await withScene(async ({ kit, daemon, order, reported }) => {
      const puback = new RegExp(`Received PUBACK from ${kit.kit_id}`);
      const disk = new Database(join(kit.dir, 'state', buffer_file));
      disk.exec('BEGIN IMMEDIATE');
      try {
        const task_id = await order({ payload: { ms: 0 } });
        await broker.logged(new RegExp(`Sending PUBLISH to ${kit.kit_id} .*${task_id}`));
        // No event shows it: all that the daemon answers waits for the disk, which counts as failed after 5 s.
        await sleep(100, new AbortController().signal);
        expect(broker.log()).not.toMatch(puback);
        expect(kit.effects()).toEqual([]);
        await daemon.end('SIGKILL');
        disk.exec('ROLLBACK');
        await kit.start();
        await reported(task_id, 'completed');
        await eventually('acknowledged', () => puback.test(broker.log()));
        expect(kit.effects()).toEqual(['falcon work']);
      } finally {
        disk.close();
      }
    });
  });
});

async function forgetSession(url: string, clientId: string): Promise<void> {
  const client = await connectAsync(url, { clientId, clean: true, protocolVersion: 5 });
  await client.endAsync();
}
