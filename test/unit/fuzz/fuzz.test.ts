/** The short form of `npm run fuzz`: every parser takes some thousand hostile inputs with a fresh seed, and the engine itself is shown to find. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readCorpus } from '../../fuzz/corpus.ts';
import { fuzzTarget, type Target, threadCpu_ms } from '../../fuzz/engine.ts';
import { targets } from '../../fuzz/target-groups.ts';

const inputs = 1_000;
const fresh_seed = Date.now() % 1e9;
const blind = { reachedMore: () => false };
const now_ms = (): number => performance.now();

describe('the parsers under hostile input', () => {
  it.each(targets.map((target) => [target.name, target] as const))(
    '%s throws only its declared errors',
    async (_name, target) => {
      const run = await fuzzTarget(target, {
        seed: fresh_seed,
        inputs,
        coverage: blind,
        now_ms,
        end_ms: Infinity,
        cpu_ms: threadCpu_ms,
        kept: readCorpus(target),
      });
      const seen = run.findings.map(
        ({ what, input }) => `${what}: ${input.toString('base64').slice(0, 2_000)}`,
      );
      expect({ seed: fresh_seed, seen }).toEqual({ seed: fresh_seed, seen: [] });
    },
  );
});

describe('the kept corpus', () => {
  it('holds inputs for every parser, and nothing for others', () => {
    const files = readdirSync(join(import.meta.dirname, '../../fuzz/corpus'), { recursive: true })
      .map(String)
      .filter((file) => file.endsWith('.txt'));
    expect(files.toSorted()).toEqual(targets.map(({ group, name }) => `${group}/${name}.txt`).toSorted());
    for (const target of targets) expect(readCorpus(target).length).toBeGreaterThan(0);
  });
});

describe('the fuzzing engine', () => {
  /** Four nested conditions: blind mutation hardly ever gets through, guided mutation does. */
  function planted(): { readonly target: Target; readonly coverage: { reachedMore(): boolean } } {
    let depth = 0;
    let deepest = 0;
    return {
      target: {
        name: 'planted',
        read: (input) => {
          const text = input.toString('latin1');
          depth = ['F', 'FU', 'FUZ', 'FUZZ'].filter((prefix) => text.startsWith(prefix)).length;
          if (depth === 4) throw new Error('planted');
        },
        allows: () => false,
        seeds: ['aaaa'],
        dictionary: ['F', 'U', 'Z'],
        bytes_max: 16,
      },
      coverage: {
        reachedMore: () => {
          const isMore = depth > deepest;
          deepest = Math.max(depth, deepest);
          return isMore;
        },
      },
    };
  }

  it('finds a planted fault by keeping the inputs that get further', async () => {
    const { target, coverage } = planted();
    const run = await fuzzTarget(target, {
      seed: 1,
      inputs: 20_000,
      coverage,
      now_ms,
      end_ms: Infinity,
      cpu_ms: () => 0,
    });
    expect(run.findings.map(({ what }) => what)).toEqual([expect.stringContaining('planted')]);
    expect(run.kept.length).toBeGreaterThanOrEqual(3);
  });
});
