/** Plans that were written to cost much or to deceive: refused in one sentence, before anything is sent to the vehicle. */
import { describe, expect, it } from 'vitest';
import { readPlan } from '../../../../../drivers/mavlink/missions/plan.ts';
import { dispatch_chars_max } from '../../../../../src/kit/tasks/limits.ts';
import type { JsonObject } from '../../../../../src/contract/json.ts';
import { readDispatch } from '../../../../../src/kit/tasks/dispatch.ts';
import { bounded } from '../../../../../src/kit/tasks/sentences.ts';
import { asset_id, task_id } from '../../../../support/contract-samples.ts';
import { threadCpu_ms } from '../../../../fuzz/engine.ts';

const sentence_chars_max = 1_000;
/** The rule of the fuzzer: a second, three times in a row. */
const cpu_max_ms = 1_000;
const attempts = 3;

const dispatchOf = (plan: string): string =>
  `{"task_id":"${task_id}","asset_id":"${asset_id}","command_name":"upload_mission",` +
  `"created_at":"2026-11-26T08:00:00.000Z","deadline":"2026-11-26T09:00:00.000Z","payload":{"plan":${plan}}}`;
const mission = (items: string): string =>
  `{"fileType":"Plan","version":1,"mission":{"version":2,"items":[${items}]}}`;
const many = (item: string, chars = 60_000): string =>
  Array.from({ length: Math.floor(chars / (item.length + 1)) }, () => item).join(',');
const simple = (params: string, more = ''): string =>
  `{"type":"SimpleItem","command":177,"frame":2,"params":[${params}]${more}}`;

/** What the task ends with: the refusal of its dispatch, or of its plan. */
function refusalOf(plan: string, kind: 'mission' | 'fence' | 'rally'): string | undefined {
  const read = readDispatch(dispatchOf(plan), task_id);
  if (read.dispatch === undefined) return read.refusal;
  const given = read.dispatch.payload['plan'];
  const found = readPlan(given as JsonObject, kind, 'ardupilot');
  return 'fault' in found ? bounded(found.fault) : undefined;
}

describe('A plan of a hostile sender', () => {
  it('is refused where one of a pilot, in the same dispatch, is read', () => {
    expect(
      refusalOf(mission(many(simple('0,0,0,0,0,0,0').replace('177', '16'), 5_000)), 'mission'),
    ).toBeUndefined();
  });

  it.each([
    ['of 100 MB', mission(many('{}', 100_000_000))],
    ['of a million items in packed form', mission('{},'.repeat(1_000_000).slice(0, -1))],
    ['30,000 deep', mission(`${'['.repeat(30_000)}${']'.repeat(30_000)}`)],
    ['of 20,000 empty items', mission(many('{}'))],
    ['of 30,000 numbers for items', mission(many('1'))],
    ['whose jumps have no target', mission(many(simple('9,9,0,0,0,0,0')))],
    ['whose parameters are beyond any number', mission(many(simple('1e308,0,0,0,0,0,0')))],
    ['with an item of 60,000 characters', mission(`{"type":"${'\\u202e'.repeat(9_000)}"}`)],
    [
      'with a complex item of 9,000 controls',
      mission(`{"type":"C","complexItemType":"${'\\u001b'.repeat(9_000)}"}`),
    ],
    ['with a key that is no key', '{"__proto__":{"fileType":"Plan"},"constructor":1}'],
  ])('%s is refused in one sentence', { tags: 'long', timeout: 60_000 }, (_, plan) => {
    const costs_ms = Array.from({ length: attempts }, () => {
      const began_ms = threadCpu_ms();
      const refusal = refusalOf(plan, 'mission') ?? '';
      expect(refusal).not.toBe('');
      expect(refusal.length).toBeLessThanOrEqual(sentence_chars_max);
      expect(refusal).not.toMatch(/[\p{Cc}\p{Cf}]/u);
      return threadCpu_ms() - began_ms;
    });
    expect(Math.min(...costs_ms)).toBeLessThan(cpu_max_ms);
  });

  it.each([
    [
      'fence',
      `{"fileType":"Plan","version":1,"geoFence":{"version":2,"polygons":[${many('{"inclusion":true,"polygon":[]}')}]}}`,
    ],
    [
      'fence',
      `{"fileType":"Plan","version":1,"geoFence":{"version":2,"polygons":[${many(`{"inclusion":true,"polygon":[${many('[0,0]', 1_500)}]}`)}]}}`,
    ],
    ['rally', `{"fileType":"Plan","version":1,"rallyPoints":{"version":2,"points":[${many('[0,0,0]')}]}}`],
  ] as const)('with more of a %s than a vehicle takes is refused in one sentence', (kind, plan) => {
    expect(plan.length).toBeLessThan(dispatch_chars_max);
    expect(refusalOf(plan, kind)?.length).toBeLessThanOrEqual(sentence_chars_max);
    expect(refusalOf(plan, kind)).not.toBeUndefined();
  });
});
