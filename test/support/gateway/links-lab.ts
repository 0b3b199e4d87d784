/** The links driver inside a network namespace, as a test sees it: its newest report, and waiting for one that fits. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { link, type Link } from '../../../src/contract/kit.ts';
import { dyingWithUs } from '../peers.ts';

const report = z.object({ wans: z.array(link), reasons: z.record(z.string(), z.string().nullable()) });
type Report = z.output<typeof report>;

export interface LinksInside {
  readonly reports: readonly Report[];
  /** Statuses of the newest report by name. */
  statuses(): Readonly<Record<string, Link['status']>>;
  /** Resolves with the first report from now on, the newest included, that fits; rejects after `ms`. */
  until(what: string, fits: (report: Report) => boolean, ms?: number): Promise<Report>;
  stop(): Promise<void>;
}

const main = fileURLToPath(new URL('links-process.ts', import.meta.url));

/** `prefix` is put before the command line, to run it in a namespace; `session_ip`: a connection of the process leads there. */
export function startLinks(
  prefix: readonly string[],
  options: object,
  state_dir: string,
  session_ip?: string,
): LinksInside {
  const args_of = [JSON.stringify(options), state_dir, ...(session_ip === undefined ? [] : [session_ip])];
  const line = [...dyingWithUs(), ...prefix, process.execPath, main, ...args_of];
  const [command = '', ...args] = line;
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const reports: Report[] = [];
  const waiting = new Set<() => void>();
  createInterface({ input: child.stdout }).on('line', (text) => {
    reports.push(report.parse(JSON.parse(text)));
    for (const look of waiting) look();
  });
  return {
    reports,
    statuses: () => Object.fromEntries((reports.at(-1)?.wans ?? []).map((each) => [each.name, each.status])),
    until: async (what, fits, ms = 20_000) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const newest = reports.at(-1);
          if (!newest || !fits(newest)) return;
          waiting.delete(look);
          clearTimeout(timer);
          resolve(newest);
        };
        const timer = setTimeout(() => {
          waiting.delete(look);
          reject(new Error(`not within ${ms} ms: ${what}; at last ${JSON.stringify(reports.at(-1))}`));
        }, ms);
        waiting.add(look);
        look();
      }),
    async stop() {
      const ended = once(child, 'exit');
      child.stdin.end();
      await ended;
    },
  };
}
