import { describe, expect, it } from 'vitest';
import { type EndOfSession, Problems, Takeovers } from '../../../../src/kit/uplink/problems.ts';

function lab() {
  const world = { now_ms: 0 };
  const problems = new Problems(() => world.now_ms, { warn: () => undefined });
  const takeovers = new Takeovers(() => world.now_ms, problems);
  const end = (change: Partial<EndOfSession>): void => {
    world.now_ms += 2_000;
    takeovers.ended({ code: undefined, held_ms: 1_000, without_a_word: true, ...change });
  };
  return { world, problems, end };
}

describe('another client with the same id', () => {
  it('is reported as soon as the broker names it, for ten minutes', () => {
    const { world, problems, end } = lab();
    end({ code: 0x8e, without_a_word: false });
    expect(problems.sentences().join()).toMatch(/^another client uses this kit_id/);
    world.now_ms += 600_001;
    expect(problems.sentences()).toEqual([]);
  });

  it('is assumed after four short connections that the broker closed without a reason', () => {
    const { problems, end } = lab();
    for (let n = 0; n < 3; n++) end({});
    expect(problems.sentences()).toEqual([]);
    end({});
    expect(problems.sentences().join()).toMatch(/perhaps another client uses this kit_id/);
  });

  it('is not assumed where the link breaks or connections last', () => {
    const { problems, end } = lab();
    for (let n = 0; n < 10; n++) end({ without_a_word: false });
    for (let n = 0; n < 10; n++) end({ held_ms: 40_000 });
    expect(problems.sentences()).toEqual([]);
  });
});
