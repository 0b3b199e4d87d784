/** What the log tells of commands and assets: each thing once, with its driver, its asset and its task. */
import { expect, test } from 'vitest';
import { Story } from '../../../src/app/story.ts';
import { journalDatagram } from '../../../src/platform/journal.ts';
import { readEntry } from '../../../src/platform/log-entry.ts';
import { createLog } from '../../../src/platform/log.ts';
import { journalFields } from '../../fakes/fake-systemd.ts';

const kit_id = '3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10';
const asset_id = '8aa2fc19-bfff-5367-a6e0-1c7000065452';
const task_id = '0c2f6f0a-33d8-4a4c-9d0e-6f1d2b3c4d5e';
const falcon = { id: asset_id, key: 'mavlink:0de3', name: 'Falcon', driver: 'drones' };

/** A story and its lines as the journal of systemd has them. */
function told() {
  const lines: string[] = [];
  const log = createLog({ level: 'info', readable: false, out: { write: (line) => lines.push(line) } });
  const story = new Story(log, () => [falcon]);
  const fields = () =>
    lines.map((line) => {
      const entry = readEntry(line);
      if (!entry) throw new Error('no entry');
      return journalFields(journalDatagram(entry, kit_id));
    });
  return {
    fields,
    sentences: () => fields().map(({ MESSAGE = '' }) => MESSAGE.replace(/after [\d.]+ s/u, 'after a time')),
    report: (status: string, more: object = {}) =>
      story.tell({
        channel: `task/${task_id}`,
        body: JSON.stringify({
          task_id,
          asset_id,
          command_name: 'arm',
          status,
          revision: 1,
          result: {},
          ...more,
        }),
      }),
    announce: (status: string) =>
      story.tell({
        channel: `asset/${asset_id}`,
        body: JSON.stringify({
          asset_key: falcon.key,
          name: falcon.name,
          type: 'drone',
          status,
          driver: 'drones',
        }),
      }),
    tell: (channel: string, body: string) => story.tell({ channel, body }),
  };
}

test('a command begins once and ends once, however often it reports', () => {
  const { report, sentences, fields } = told();
  report('running');
  report('running', { progress: { message: 'half way', pct: 50 } });
  report('completed');
  report('completed');
  report('running');
  expect(sentences()).toEqual(['drones Falcon: arm begins', 'drones Falcon: arm is done after a time']);
  expect(fields()[0]).toMatchObject({ TASK: task_id, DRIVER: 'drones', PRIORITY: '6', KIT: kit_id });
});

test('a command that fails says why, also when it never began', () => {
  const { report, sentences, fields } = told();
  report('failed', { result: { error: 'the vehicle is not ready' } });
  expect(sentences()).toEqual(['drones Falcon: arm failed (the vehicle is not ready)']);
  expect(fields()[0]).toMatchObject({ TASK: task_id, PRIORITY: '4' });
});

test('a command for an asset that nobody knows is told too', () => {
  const { report, sentences } = told();
  report('failed', { asset_id: null, command_name: null, result: { error: 'no asset' } });
  expect(sentences()).toEqual(['tasks: a command failed (no asset)']);
});

test('an asset is told of when it is there for the first time, and not while it is offline', () => {
  const { announce, tell, sentences } = told();
  announce('offline');
  expect(sentences()).toEqual([]);
  announce('online');
  announce('offline');
  announce('online');
  expect(sentences()).toEqual(['drones Falcon: drone is online']);
  tell(`asset/${asset_id}`, 'null');
  tell(`asset/${asset_id}/commands`, '{"revision":1,"commands":[]}');
  tell(`feed/${asset_id}/gps`, '{"lat":1}');
  expect(sentences()).toHaveLength(1);
});
