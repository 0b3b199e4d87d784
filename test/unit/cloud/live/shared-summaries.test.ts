/** Summaries that are read once for all sockets, and never from before a change. */
import { describe, expect, it } from 'vitest';
import type { ListedKit } from '../../../../src/cloud/kit-list.ts';
import { Changes } from '../../../../src/cloud/changes.ts';
import { SharedSummaries } from '../../../../src/cloud/live/summaries.ts';
import { eventually } from '../../../support/eventually.ts';

/** A database that answers when the test says so, with the values of the moment it was asked. */
function startDatabase() {
  const values = new Map([
    ['a', 1],
    ['b', 1],
  ]);
  const asked: (readonly string[])[] = [];
  const answers: (() => void)[] = [];
  let isDown = false;
  const changes = new Changes();
  const shared = new SharedSummaries(changes, async (kit_ids) => {
    asked.push(kit_ids);
    const found = kit_ids.filter((id) => values.has(id));
    const listed = found.map((id) => ({ kit: { id, name: `${id}${values.get(id)}` } }) as ListedKit);
    const { promise, resolve, reject } = Promise.withResolvers<readonly ListedKit[]>();
    const isRefused = isDown;
    answers.push(() => (isRefused ? reject(new Error('the database is down')) : resolve(listed)));
    return promise;
  });
  return {
    asked,
    changes,
    shared,
    answer: () => {
      for (const answer of answers.splice(0)) answer();
    },
    change: (kit_id: string, value: number) => {
      values.set(kit_id, value);
      changes.publish([{ kind: 'kit', kit_id }]);
    },
    setDown: (down: boolean) => {
      isDown = down;
    },
  };
}

const namesOf = async (listed: Promise<readonly ListedKit[]>): Promise<readonly string[]> =>
  (await listed).map(({ kit }) => kit.name);
const idle = { onTurn: () => undefined, onChange: () => undefined };

describe('SharedSummaries', () => {
  it('reads a kit once for all that ask for it, and only what is not there yet', async () => {
    const { shared, asked, answer } = startDatabase();
    const first = shared.of(['a']);
    const second = shared.of(['a', 'b']);
    answer();
    expect(await namesOf(first)).toEqual(['a1']);
    expect(await namesOf(second)).toEqual(['a1', 'b1']);
    expect(await namesOf(shared.of(['b', 'a']))).toEqual(['b1', 'a1']);
    expect(asked).toEqual([['a'], ['b']]);
  });

  it('reads again after a change, also one that comes while it reads', async () => {
    const { shared, asked, answer, change } = startDatabase();
    const end = new AbortController();
    shared.follow(idle, end.signal);
    const before = shared.of(['a']);
    change('a', 2);
    const after = shared.of(['a']);
    answer();
    expect(await namesOf(before)).toEqual(['a1']);
    expect(await namesOf(after)).toEqual(['a2']);
    expect(await namesOf(shared.of(['a']))).toEqual(['a2']);
    expect(asked).toHaveLength(2);
    end.abort();
  });

  it('leaves out what is not stored, and reads again after a failure', async () => {
    const { shared, answer, setDown } = startDatabase();
    setDown(true);
    const failed = Promise.all([shared.of(['a']), shared.of(['a'])]);
    answer();
    await expect(failed).rejects.toThrow('down');
    setDown(false);
    const found = shared.of(['unknown', 'a']);
    answer();
    expect(await namesOf(found)).toEqual(['a1']);
  });

  it('gives every follower turns and changes until it leaves, and then follows nothing', async () => {
    const { shared, changes, change } = startDatabase();
    const followers = Array.from({ length: 6 }, () => {
      const end = new AbortController();
      const follower = { end, turns: 0, changed: [] as string[] };
      shared.follow(
        {
          onTurn: () => {
            follower.turns += 1;
          },
          onChange: (kit_id) => follower.changed.push(kit_id),
        },
        end.signal,
      );
      return follower;
    });
    followers[0]?.end.abort();
    change('b', 2);
    changes.publish([{ kind: 'commands', kit_id: 'a', asset_id: 'x' }]);
    await eventually('turns', () => followers.slice(1).every(({ turns }) => turns > 0));
    expect(followers.map(({ changed }) => changed)).toEqual([[], ['b'], ['b'], ['b'], ['b'], ['b']]);
    expect(followers[0]?.turns).toBe(0);
    for (const { end } of followers) end.abort();
    expect(changes.hasFleetSubscribers).toBe(false);
  });
});
