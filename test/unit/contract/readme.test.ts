/** The example in the contract's README is what the code does. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { writeBatch } from '../../../src/contract/batch/pack.ts';
import { envelopeOf } from '../../../src/contract/envelope.ts';
import { droneFeeds } from '../../../src/contract/drone-feeds.ts';

const readme = readFileSync(new URL('../../../src/contract/README.md', import.meta.url), 'utf8');
const blocks = [...readme.matchAll(/```(\w+)\n([^]*?)```/gu)].map((match) => ({
  kind: match[1],
  text: match[2]!,
}));
const exampleItem = z.object({
  channel: z.string(),
  epoch: z.int(),
  seq: z.int(),
  time_ms: z.int(),
  data: z.looseObject({}).transform((data) => JSON.stringify(data)),
});

it('the batch of the worked example is the one that its messages are packed into', () => {
  const lines = blocks
    .find(({ kind }) => kind === 'jsonl')!
    .text.trim()
    .split('\n');
  const items = lines.map((line) => exampleItem.parse(JSON.parse(line)));
  const shown = blocks.findLast(({ kind }) => kind === 'json')!.text.replaceAll('\n', '');
  expect(items).toHaveLength(3);
  expect(shown).toBe(writeBatch(items, { historical: true }));
});

it('the envelope that is shown holds a position of a drone', () => {
  const shown: unknown = JSON.parse(blocks.find(({ kind }) => kind === 'json')!.text);
  expect(envelopeOf(droneFeeds.gps.strict()).safeParse(shown).error).toBeUndefined();
});
