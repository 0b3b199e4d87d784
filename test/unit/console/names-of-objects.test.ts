/** A kit calls a feed, a command, an input, a type or a detection by the name of a thing that every object has. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ServerFrame } from '../../../src/console/types.d.ts';
import { emptyWorld, takeFrame } from '../../../src/console/world/world.ts';
import { fieldsOf } from '../../../src/console/views/command/form.ts';
import { seenEntry } from '../../../src/console/world/history/log.ts';
import { field } from '../../../src/console/json.ts';

const time = '2026-11-21T10:00:00.000Z';

describe.each(['constructor', 'toString', 'valueOf', '__proto__', 'hasOwnProperty'])('%s', (name) => {
  it('as a feed is kept as any feed, each time that it comes', () => {
    const world = emptyWorld();
    const frame = { type: 'feed', asset_id: 'a', feed: name, message: { time, data: { n: 1 } } };
    for (let times = 0; times < 3; times += 1) takeFrame(world, frame as unknown as ServerFrame);
    expect(Object.entries(world.feeds.get('a') ?? {})).toEqual([[name, frame.message]]);
    takeFrame(world, { ...frame, feed: 'gps' } as unknown as ServerFrame);
    expect(Object.keys(world.feeds.get('a') ?? {})).toEqual([name, 'gps']);
  });

  it('as an input is called by its name', () => {
    const properties = Object.fromEntries([[name, { type: 'string' }]]);
    expect(fieldsOf({ type: 'object', properties })).toMatchObject([{ name }]);
  });

  it('as a detection, or as a field that is missing, is not taken for something else', () => {
    const message = { time, data: { detected: true, types: [name] } };
    const frame = { type: 'feed', asset_id: 'a', feed: 'ai_detection', message };
    expect(seenEntry(frame as unknown as ServerFrame, emptyWorld())?.title).toBe(`: ${name}`);
    expect(field({}, name)).toBeUndefined();
  });
});

it('words for names of devices are looked up as their own alone', () => {
  const root = join(import.meta.dirname, '../../../src/console');
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  );
  const tables = 'command|form\\.names|seen|history\\.event|history\\.reason|type|fly\\.breach';
  const [indexed, looked_up] = [`\\bt\\.(?:${tables})\\[`, `\\bown\\(t\\.(?:${tables}),`];
  const count = (pattern: string): readonly string[] =>
    files.filter((file) => new RegExp(pattern, 'u').test(readFileSync(join(root, file), 'utf8')));
  expect(count(indexed)).toEqual([]);
  expect(count(looked_up).length).toBeGreaterThan(6);
});
