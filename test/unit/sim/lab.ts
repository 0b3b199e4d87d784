/** A world with one process for the tests of the simulator's own parts. */
import '../../sim/world/globals.ts';
import { Rng } from '../../sim/world/rng.ts';
import { type Proc, World } from '../../sim/world/scheduler.ts';
import { inhabit } from '../../sim/world/globals.ts';

/** Gives the test a world; afterwards time is real again. */
export async function withWorld(
  seed: string,
  play: (world: World, proc: Proc) => Promise<void>,
): Promise<void> {
  const world = new World(new Rng(seed));
  const proc = world.spawn('one', { name: 'here', wall_offset_ms: 0 });
  inhabit(world);
  try {
    await play(world, proc);
  } finally {
    inhabit(undefined);
  }
}
