/** The virtual clock: events in order, one at a time, and nothing of a process that is dead. */
import { expect, test } from 'vitest';
import { withWorld } from './lab.ts';

test('timers of a process run at their virtual time, in the order in which they were set', async () => {
  await withWorld('order', async (world, proc) => {
    const seen: string[] = [];
    const note = (what: string): void => void seen.push(`${what} ${Math.round(world.now_ms)}`);
    world.after(0, proc, () => {
      setTimeout(() => note('late'), 500);
      setTimeout(() => note('first'), 20);
      setTimeout(() => note('second'), 20);
      const beat = setInterval(() => note('beat'), 200);
      setTimeout(() => clearInterval(beat), 450);
    });
    await world.run(1_000);
    expect(seen).toEqual(['first 20', 'second 20', 'beat 200', 'beat 400', 'late 500']);
  });
});

test('what an event sets going in promises has come to rest before the next event', async () => {
  await withWorld('rest', async (world, proc) => {
    const seen: number[] = [];
    const count = async (n: number): Promise<void> => {
      for (let i = 0; i < 50; i++) await Promise.resolve();
      seen.push(n);
    };
    world.after(1, proc, () => void count(1));
    world.after(1, proc, () => void count(2));
    await world.run(10);
    expect(seen).toEqual([1, 2]);
  });
});

test('a dead process does nothing any more, and a frozen one does it later', async () => {
  await withWorld('dead', async (world, proc) => {
    const other = world.spawn('other', { name: 'there', wall_offset_ms: 0 });
    const seen: string[] = [];
    world.after(10, proc, () => seen.push('dead'));
    world.after(10, other, () => seen.push(`frozen until ${world.now_ms}`));
    proc.alive = false;
    other.frozen_until_ms = 70;
    await world.run(100);
    expect(seen).toEqual(['frozen until 70']);
  });
});

test('the clock and chance of a process are those of its machine and of the seed', async () => {
  const draw = async (seed: string): Promise<readonly number[]> => {
    const drawn: number[] = [];
    await withWorld(seed, async (world, proc) => {
      proc.machine.wall_offset_ms = 3_600_000;
      world.after(250, proc, () => drawn.push(Math.random(), Date.now(), performance.now()));
      await world.run(1_000);
    });
    return drawn;
  };
  const [chance, wall_ms, mono_ms] = await draw('a');
  expect(mono_ms).toBe(250);
  expect(wall_ms).toBe(Date.UTC(2026, 10, 21, 11, 0, 0, 250));
  expect(await draw('a')).toEqual([chance, wall_ms, mono_ms]);
  expect((await draw('b'))[0]).not.toBe(chance);
});
