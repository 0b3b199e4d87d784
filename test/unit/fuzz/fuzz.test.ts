/** The short form of `npm run fuzz`: every parser takes some thousand hostile inputs with a fresh seed, and the engine itself is shown to find. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../support/random.ts';
import { readCorpus } from '../../fuzz/corpus.ts';
import { fuzzTarget, type Target, threadCpu_ms } from '../../fuzz/engine.ts';
import { mutate } from '../../fuzz/mutate.ts';
import { mutateJson } from '../../fuzz/mutate-json.ts';
import { protobuf, xml } from '../../fuzz/structures.ts';
import { targets } from '../../fuzz/target-groups.ts';
import { readEnvelope } from '../../../drivers/onvif/soap/envelope.ts';
import { decode } from '../../../drivers/starlink/api/protobuf.ts';

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

  it('counts a fault once, at its place in the code, whatever the numbers that Node.js names', async () => {
    // An empty one is another error.
    const beyond = (input: Buffer): number => (input.length > 0 ? input.readUInt8(input.length) : 0);
    const target: Target = { ...planted().target, read: beyond };
    const limits = { seed: 1, inputs: 200, coverage: blind, now_ms, end_ms: Infinity, cpu_ms: () => 0 };
    const { findings } = await fuzzTarget(target, limits);
    expect(findings.map(({ what }) => what)).toEqual([
      expect.stringMatching(/^threw RangeError ERR_OUT_OF_RANGE at .*fuzz\.test\.ts:\d+/u),
    ]);
  });

  it('makes most inputs with a structure that is read to its end', () => {
    const random = seededRandom(1);
    const made = <T>(make: (from: typeof random) => Buffer, read: (input: Buffer) => T): readonly T[] =>
      Array.from({ length: 200 }, () => read(make(random)));
    expect(made(protobuf([1, 2004]), (input) => decode(input).size)).not.toContain(0);
    const kinds = made(xml(['a', 'b'], ['', '1']), (input) => readEnvelope(input.toString()).kind);
    expect(kinds.filter((kind) => kind === 'read').length).toBeGreaterThan(100);
  });

  it('changes one value of a text of JSON and leaves the text valid', () => {
    const random = seededRandom(1);
    const input = Buffer.from('{"a":[1,{"b":"c"}]}');
    const texts = Array.from({ length: 200 }, () => mutateJson(input, random, [input]).toString());
    expect(texts.map((text) => typeof JSON.parse(text))).not.toContain('undefined');
    expect(new Set(texts).size).toBeGreaterThan(50);
    expect(mutateJson(Buffer.from('{"a":'), random, [input]).toString()).toBe('{"a":');
  });

  it('plays the same seed the same way', () => {
    const material = { corpus: [Buffer.from('{"a":1}')], dictionary: [Buffer.from('[')], bytes_max: 1_000 };
    const inputsOf = (seed: number): string[] => {
      const random = seededRandom(seed);
      return Array.from({ length: 50 }, () => mutate(random, material).toString('hex'));
    };
    expect(inputsOf(7)).toEqual(inputsOf(7));
    expect(inputsOf(7)).not.toEqual(inputsOf(8));
  });

  function slow(clock: { cpu_ms: number; wall_ms: number }, took: { cpu_ms: number; wall_ms: number }) {
    const target: Target = {
      ...planted().target,
      read: () => {
        clock.cpu_ms += took.cpu_ms;
        clock.wall_ms += took.wall_ms;
      },
    };
    return fuzzTarget(target, {
      seed: 1,
      inputs: 1,
      coverage: blind,
      now_ms: () => clock.wall_ms,
      end_ms: Infinity,
      cpu_ms: () => clock.cpu_ms,
    });
  }

  it('reports an input that takes too much processor time, three times in a row', async () => {
    const run = await slow({ cpu_ms: 0, wall_ms: 0 }, { cpu_ms: 1_500, wall_ms: 1_500 });
    expect(run.findings[0]?.what).toContain('took more than');
  });

  it('does not blame an input for a machine that is busy elsewhere', async () => {
    const run = await slow({ cpu_ms: 0, wall_ms: 0 }, { cpu_ms: 2, wall_ms: 60_000 });
    expect(run.findings).toEqual([]);
  });
});
