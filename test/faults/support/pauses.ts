/**
 * Pauses of a virtual machine: its host takes all processors at once, and the thread that ran is charged for the time. A thread that
 * is slow itself holds up one processor only.
 */
import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { promisify } from 'node:util';
import { z } from 'zod';
import { type Child, startChild } from '../../support/child.ts';

const pause = z.object({ from_ms: z.number(), to_ms: z.number() });
type Pause = z.output<typeof pause>;
const run = promisify(execFile);
const real_time_priority = '50';

export class MachinePauses {
  /** One process on each processor. */
  readonly #probes: readonly Child[];

  private constructor(probes: readonly Child[]) {
    this.#probes = probes;
  }

  /** Finds no pauses on a machine with one processor, and where this user may give no real-time priority. */
  static async start(signal: AbortSignal): Promise<MachinePauses> {
    const probes = Array.from({ length: availableParallelism() }, () =>
      startChild([new URL('pause-process.ts', import.meta.url).pathname]),
    );
    const end = (): void => {
      for (const probe of probes) probe.send('SIGKILL');
    };
    signal.addEventListener('abort', end, { once: true });
    try {
      for (const [cpu, { pid }] of probes.entries()) {
        await run('taskset', ['-a', '-c', '-p', String(cpu), String(pid)]);
        await run('chrt', ['-a', '-f', '-p', real_time_priority, String(pid)]);
      }
    } catch {
      end();
      return new MachinePauses([]);
    }
    return new MachinePauses(probes);
  }

  /** For how long all processors stood still between two moments, in milliseconds since 1970. */
  between(from_ms: number, to_ms: number): number {
    if (this.#probes.length < 2) return 0;
    const common = this.#probes
      .map(pausesOf)
      .reduce(
        (all, of_this) => all.flatMap((each) => of_this.flatMap((other) => overlap(each, other))),
        [{ from_ms, to_ms }],
      );
    return common.reduce((sum, each) => sum + each.to_ms - each.from_ms, 0);
  }
}

function pausesOf(probe: Child): readonly Pause[] {
  const lines = probe.output().split('\n').slice(0, -1);
  return lines.map((line) => pause.parse(JSON.parse(line)));
}

function overlap(one: Pause, other: Pause): readonly Pause[] {
  const from_ms = Math.max(one.from_ms, other.from_ms);
  const to_ms = Math.min(one.to_ms, other.to_ms);
  return from_ms < to_ms ? [{ from_ms, to_ms }] : [];
}
