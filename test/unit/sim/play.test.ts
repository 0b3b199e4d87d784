/** Whole stories: the same seed is the same story, and a check that must fail does fail. */
import '../../sim/world/globals.ts';
import { expect, test } from 'vitest';
import { rowId } from '../../../src/kit/outbox/row.ts';
import { play } from '../../sim/play.ts';
import type { Scene, Setting } from '../../sim/scene.ts';
import { type Story } from '../../sim/story.ts';
import { Witness } from '../../sim/checks/witness.ts';

/** A short day without faults. */
const calm: Story = {
  seed: 'calm',
  setting: {
    duration_ms: 6_000,
    assets: 2,
    feed_every_ms: 300,
    event_every_ms: 900,
    latency_ms: 0.5,
    kit: {
      ack: 'auto',
      protocol: 'auto',
      packet_ms: 0,
      window_messages: 16,
      rows_max: 1_000_000,
      bytes_max: 64 * 1024 * 1024,
    },
    service_protocol: 'auto',
    isReordering: false,
    hasReserve: false,
    isSynced: true,
  },
  actions: [{ at_ms: 3_000, kind: 'command', ms: 200, n: 0, how: 'move' }],
};

async function violationsAfter(
  spoil: (scene: Scene) => void,
  ack: Setting['kit']['ack'] = 'auto',
): Promise<readonly string[]> {
  const setting = { ...calm.setting, kit: { ...calm.setting.kit, ack } };
  const { violations } = await play({ ...calm, setting }, spoil);
  return violations;
}

test('a calm story is clean, and its messages and its command arrive', async () => {
  let seen: object = {};
  const { violations, messages } = await play(calm, ({ devices, orders }) => {
    seen = { runs: devices.runs.length, ended: devices.runs[0]?.ended, orders: orders.length };
  });
  expect(violations).toEqual([]);
  expect(messages).toBeGreaterThan(30);
  expect(seen).toEqual({ runs: 1, ended: 'done', orders: 1 });
});

test('the same story has the same trace each time, and another seed has another', async () => {
  const story: Story = {
    ...calm,
    actions: [
      ...calm.actions,
      { at_ms: 1_500, kind: 'reset', ms: 0, n: 0, how: 'kit' },
      { at_ms: 4_000, kind: 'power', ms: 700, n: 0, how: '' },
    ],
  };
  const [first, second] = [await play(story), await play(story)];
  expect(second.trace).toBe(first.trace);
  expect([second.hash, second.events]).toEqual([first.hash, first.events]);
  expect((await play({ ...story, seed: 'another' })).hash).not.toBe(first.hash);
});

test('a message that is nowhere is found', async () => {
  const found = await violationsAfter(({ witness }) => {
    const [id] = [...witness.taken.values()].filter(({ lane }) => lane === 'alarm').map((taken) => taken.id);
    witness.stored.delete(id ?? 0);
  });
  expect(found.join('\n')).toContain('1 accepted messages of the lane alarm are nowhere');
});

test('a message that was never sent is found', async () => {
  const found = await violationsAfter(({ witness }) => witness.stored.set(rowId({ epoch: 1, seq: 1 }), 1));
  expect(found).toContain('the service stored 1/1, which no kit has sent');
});

test('a command that ran twice is found', async () => {
  const found = await violationsAfter(({ devices }) => {
    const [run] = devices.runs;
    if (run) devices.runs.push({ ...run });
  });
  expect(found).toContain('task 1 ran 2 times');
});

test('a command that ran after its deadline, or whose state in the service is wrong, is found', async () => {
  const found = await violationsAfter(({ devices }) => {
    const [run] = devices.runs;
    if (run) devices.runs.splice(0, 1, { ...run, began_ms: run.began_ms + 60_000, ended: 'stopped' });
  });
  expect(found.join('\n')).toMatch(/task 1 began \d+ ms after its deadline/u);
  expect(found).toContain('task 1 is completed, and the machine has not done it');
});

test('an older value among the retained messages is found', async () => {
  const found = await violationsAfter(({ broker }) => {
    for (const [topic, message] of broker.retained) {
      if (!topic.endsWith('/commands')) continue;
      broker.retained.set(topic, { ...message, payload: Buffer.from('{"epoch":7,"seq":1,"data":{}}') });
    }
  });
  expect(found.join('\n')).toMatch(/the broker keeps 7\/1 of commands, the kit said \d+\/\d+ last/u);
});

test('an older value at the service is found', async () => {
  const found = await violationsAfter(({ witness }) => {
    const [key] = witness.newest.keys();
    witness.newest.set(key ?? '', { id: rowId({ epoch: 999_999, seq: 1 }) });
  });
  expect(found.join('\n')).toMatch(/the service shows \d+\/\d+ of \w+, and has had 999999\/1/u);
});

test('a value at the service that goes back while the story runs is found', async () => {
  const goBack = (scene: Scene): void =>
    scene.later(4_000, () => {
      const { disk, file } = scene.service;
      disk.connectionTo(file)?.exec('UPDATE feeds SET epoch = 0, seq = 1');
    });
  const { violations } = await play(calm, undefined, goBack);
  expect(violations).toContain('at the service the value of feeds went back');
});

test('an acknowledgement of a message that is not stored is found', () => {
  const witness = new Witness();
  witness.stored.set(rowId({ epoch: 5, seq: 1 }), 1);
  const ack = (last: number) => JSON.stringify({ epoch: 5, ranges: [[1, last]] });
  expect(witness.wrongIn(ack(1))).toBeUndefined();
  expect(witness.wrongIn(ack(2))).toBe('the service acknowledged what it has not stored');
  expect(witness.wrongIn(ack(900_000))).toBe('the service acknowledged 900000 numbers at once');
});

test('a connection that ends without a fault is found', async () => {
  const cut = (scene: Scene): void =>
    scene.later(30_000, () => {
      for (const connection of scene.network.of(scene.kit_link)) connection.reset();
    });
  const long: Story = { ...calm, setting: { ...calm.setting, duration_ms: 35_000 } };
  expect((await play(long)).violations).toEqual([]);
  expect((await play(long, undefined, cut)).violations).toEqual(['the kit lost a healthy connection']);
});
