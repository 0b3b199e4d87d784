/** Makes a failing story short: leaves out actions as long as the same kind of violation is still found. */
import { type Played, play } from './play.ts';
import type { Story } from './story.ts';

/** Stories that are tried; beyond it what was found so far has to do. */
const tries_max = 150;
const tail_lines = 80;

export interface Shrunk {
  /** Numbers of the actions that are needed. */
  readonly kept: readonly number[];
  readonly violations: readonly string[];
  readonly tail: string;
}

/** Two violations are of one kind when they differ in figures and names only. */
export function kindOf(violation: string): string {
  return violation.replaceAll(/[\d/.]+/gu, '#').slice(0, 60);
}

/** `like`: only violations with this text count. */
export async function shrink(story: Story, first: Played, like: string): Promise<Shrunk> {
  const wanted = new Set(first.violations.filter((text) => text.includes(like)).map(kindOf));
  let kept = story.actions.map((_, index) => index);
  let best = first;
  let left = tries_max;
  for (let size = Math.ceil(kept.length / 2); size > 0; size = size > 1 ? Math.ceil(size / 2) : 0) {
    for (let at = 0; at < kept.length;) {
      if (left === 0) break;
      left -= 1;
      const without = [...kept.slice(0, at), ...kept.slice(at + size)];
      const actions = without.flatMap((index) => story.actions[index] ?? []);
      const played = await play({ ...story, actions });
      const isSame = played.violations.some((violation) => wanted.has(kindOf(violation)));
      if (isSame) [kept, best] = [without, played];
      else at += size;
    }
  }
  return { kept, violations: best.violations, tail: best.trace.split('\n').slice(-tail_lines).join('\n') };
}
