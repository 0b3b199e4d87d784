/** The small corpus of each parser that is kept with the sources: one input a line, in base64. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Target } from './engine.ts';
import type { Coverage } from './instrument.ts';
import type { GroupedTarget } from './target-groups.ts';

const folder = join(import.meta.dirname, 'corpus');
/** Of the inputs of one parser together. */
const corpus_bytes_max = 3_072;
const input_bytes_max = 512;

export function readCorpus(target: GroupedTarget): readonly Buffer[] {
  const file = fileOf(target);
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => Buffer.from(line, 'base64'));
}

export function writeCorpus(target: GroupedTarget, inputs: readonly Buffer[]): void {
  mkdirSync(join(folder, target.group), { recursive: true });
  writeFileSync(fileOf(target), inputs.map((input) => `${input.toString('base64')}\n`).join(''));
}

/** Those of `inputs`, smallest first, that reach code which none before them reached. */
export async function distill(
  target: Target,
  inputs: readonly Buffer[],
  coverage: Coverage,
): Promise<readonly Buffer[]> {
  coverage.forget();
  const kept: Buffer[] = [];
  let bytes = 0;
  for (const input of inputs.toSorted((a, b) => a.length - b.length)) {
    if (input.length > input_bytes_max || bytes + input.length > corpus_bytes_max) break;
    try {
      await target.read(input);
    } catch {
      // What a parser throws is judged where it is fuzzed.
    }
    if (!coverage.reachedMore()) continue;
    kept.push(input);
    bytes += input.length;
  }
  return kept;
}

function fileOf({ group, name }: GroupedTarget): string {
  return join(folder, group, `${name}.txt`);
}
