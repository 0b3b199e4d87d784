/** What the log has of tasks and assets: a line for each change that nothing else logs, with its driver, asset and task. */
import { describe, expect, it } from 'vitest';
import { ActivityLog } from '../../../../src/kit/app/activity-log.ts';
import { journalDatagram } from '../../../../src/platform/systemd/journal.ts';
import { readEntry } from '../../../../src/platform/log/entry.ts';
import { createLog } from '../../../../src/platform/log/log.ts';
import { journalFields } from '../../../fakes/services/fake-systemd.ts';
import { texts } from '../../../../src/kit/tasks/texts.ts';

const kit_id = '3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10';
const falcon = {
  id: '8aa2fc19-bfff-5367-a6e0-1c7000065452',
  key: 'mavlink:0de3',
  name: 'Falcon',
  type: 'drone',
  driver: 'drones',
};
const arm = {
  id: '0c2f6f0a-33d8-4a4c-9d0e-6f1d2b3c4d5e',
  asset_id: falcon.id,
  command_name: 'arm',
  payload: {},
  origin: { via: 'cloud', user: 'ada', uid: null, requested_by: null },
} as const;

/** An activity log, and its lines as the journal of systemd has them. */
function opened(level: 'info' | 'debug' = 'info') {
  const lines: string[] = [];
  const log = createLog({ level, readable: false, out: { write: (line) => lines.push(line) } });
  const activity_log = new ActivityLog({
    log,
    assetNamed: (id) => (id === falcon.id ? falcon : undefined),
  });
  const fields = () =>
    lines.map((line) => {
      const entry = readEntry(line);
      if (!entry) throw new Error('the line is no entry of the log');
      return journalFields(journalDatagram(entry, { identifier: 'kit-connector', kit_id }));
    });
  return {
    activity_log,
    fields,
    sentences: () => fields().map(({ MESSAGE }) => MESSAGE),
  };
}

describe('the activity log of tasks', () => {
  const requested_by = '00000000-0000-4000-8000-0000000000aa';
  it.each([
    [{ via: 'local', user: 'maria', uid: 1_001, requested_by: null }, 'via=local  user=maria'],
    [{ via: 'local', user: null, uid: 4_242, requested_by: null }, 'via=local  uid=4242'],
    [{ via: 'service', user: 'truck crew', uid: null, requested_by }, 'via=service  user="truck crew"'],
    [{ via: 'cloud', user: 'ada', uid: null, requested_by }, 'via=cloud  user=ada'],
    [{ via: 'cloud', user: null, uid: null, requested_by }, `via=cloud  requested_by=${requested_by}`],
    [{ via: 'cloud', user: null, uid: null, requested_by: null }, 'via=cloud'],
  ] as const)('names by which way a task came and who asked for it: %o', (origin, author) => {
    const { activity_log, sentences } = opened();
    activity_log.task({ kind: 'started', task: { ...arm, origin } });
    expect(sentences()).toEqual([`drones Falcon: arm started  ${author}`]);
  });

  it('has a line when a command starts and one when it completes, with the time between', () => {
    const { activity_log, sentences, fields } = opened();
    activity_log.task({ kind: 'accepted', task: arm });
    activity_log.task({ kind: 'started', task: arm });
    activity_log.task({ kind: 'completed', task: arm, ran_ms: 2_300 });
    expect(sentences()).toEqual([
      'drones Falcon: arm started  via=cloud  user=ada',
      'drones Falcon: arm completed after 2.3 s  via=cloud  user=ada',
    ]);
    expect(fields()[0]).toMatchObject({ TASK: arm.id, DRIVER: 'drones', ASSET: falcon.name, PRIORITY: '6' });
  });

  it('has the reason of a command that failed, also when it never started', () => {
    const { activity_log, sentences, fields } = opened();
    activity_log.task({ kind: 'failed', task: arm, ran_ms: 1_000, error: 'the vehicle is not ready' });
    activity_log.task({ kind: 'failed', task: arm, ran_ms: null, error: texts.cancelled_early });
    expect(sentences()).toEqual([
      'drones Falcon: arm failed after 1 s (the vehicle is not ready)  via=cloud  user=ada',
      'drones Falcon: arm failed (cancelled before it started)  via=cloud  user=ada',
    ]);
    expect(fields()[0]).toMatchObject({ TASK: arm.id, PRIORITY: '4' });
  });

  it('has what was asked for, cleaned, once for each task', () => {
    const { activity_log, sentences } = opened();
    const task = { ...arm, command_name: 'set_mode', payload: { mode: 'RTL\u001b[2J\u202e', to: [1, 2] } };
    activity_log.task({ kind: 'started', task });
    activity_log.task({ kind: 'failed', task, ran_ms: 1_000, error: 'refused' });
    activity_log.task({ kind: 'failed', task, ran_ms: null, error: 'offline' });
    expect(sentences()).toEqual([
      'drones Falcon: set_mode started  via=cloud  user=ada  payload={"mode":"RTL [2J","to":[1,2]}',
      'drones Falcon: set_mode failed after 1 s (refused)  via=cloud  user=ada',
      'drones Falcon: set_mode failed (offline)  via=cloud  user=ada  payload={"mode":"RTL [2J","to":[1,2]}',
    ]);
  });

  it('cuts a long payload', () => {
    const { activity_log, sentences } = opened();
    const task = { ...arm, command_name: 'upload_mission', payload: { plan: 'x'.repeat(60_000) } };
    activity_log.task({ kind: 'started', task });
    const [line = ''] = sentences();
    expect(line).toContain('payload="{\\"plan\\":\\"xxx');
    expect(line).toMatch(/x…"$/u);
    expect(line.length).toBeLessThan(450);
  });

  it('has a line for a dispatch that could not be read or names an unknown asset', () => {
    const { activity_log, sentences } = opened();
    const task = { id: arm.id, asset_id: null, command_name: null, payload: {}, origin: undefined };
    activity_log.task({ kind: 'failed', task, ran_ms: null, error: 'the dispatch is not JSON' });
    expect(sentences()).toEqual(['tasks: command failed (the dispatch is not JSON)']);
  });

  it('logs the acceptance of a task only at level debug', () => {
    const { activity_log, sentences } = opened('debug');
    activity_log.task({ kind: 'accepted', task: arm });
    expect(sentences()).toEqual(['drones Falcon: arm accepted  via=cloud  user=ada']);
  });
});

describe('the activity log of assets', () => {
  const day = (level?: 'info' | 'debug') => {
    const { activity_log, sentences, fields } = opened(level);
    activity_log.asset({ kind: 'added', asset: falcon });
    activity_log.asset({ kind: 'online', asset: falcon, is_first: true });
    activity_log.asset({ kind: 'announced', asset: falcon });
    activity_log.asset({ kind: 'offline', asset: falcon, reason: 'no heartbeat' });
    activity_log.asset({ kind: 'online', asset: falcon, is_first: false });
    activity_log.asset({ kind: 'removed', asset: falcon, reason: 'forgotten by request' });
    return { sentences: sentences(), fields: fields() };
  };

  it('has the first time that an asset comes online and its removal, since its driver logs what lies between', () => {
    const { sentences, fields } = day();
    expect(sentences).toEqual([
      'drones Falcon: drone came online',
      'drones Falcon: drone removed (forgotten by request)',
    ]);
    expect(fields[0]).toMatchObject({ DRIVER: 'drones', ASSET: falcon.name, PRIORITY: '6' });
  });

  it('logs every edge at level debug', () => {
    expect(day('debug').sentences).toEqual([
      'drones Falcon: drone added',
      'drones Falcon: drone came online',
      'drones Falcon: drone went offline (no heartbeat)',
      'drones Falcon: drone came back online',
      'drones Falcon: drone removed (forgotten by request)',
    ]);
  });
});
