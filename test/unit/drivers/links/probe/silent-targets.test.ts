/** What the log reports of probe targets that are silent while others answer. */
import { expect, it } from 'vitest';
import { SilentTargets } from '../../../../../drivers/links/probe/prober.ts';

it('reports each change of a target once, and nothing of an outage of the link', () => {
  const targets = new SilentTargets();
  const nothing = { fell_silent: [], answered: [] };
  expect(targets.changes(['b', 'c'], new Set(['a']))).toEqual({ fell_silent: ['b', 'c'], answered: [] });
  expect(targets.changes(['b', 'c'], new Set(['a']))).toEqual(nothing);
  // The link is dead, and then back with a window that has asked only some of them.
  expect(targets.changes([], new Set())).toEqual(nothing);
  expect(targets.changes(['c'], new Set(['a']))).toEqual(nothing);
  expect(targets.changes(['c'], new Set(['a', 'b']))).toEqual({ fell_silent: [], answered: ['b'] });
  expect(targets.changes(['b', 'c'], new Set(['a']))).toEqual({ fell_silent: ['b'], answered: [] });
});
