/** `npm run bench [-- NAME... --long]`: measures, prints one table and writes `bench.jsonl`. */
import { appendFileSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { messageOf } from '../../src/platform/errors.ts';
import { withDirectory } from '../support/temporary.ts';
import type { Bench } from './figure.ts';
import { calm } from './calm.ts';
import { jsonLine, table, type Measured } from './report.ts';

const results_file = 'bench.jsonl';
const module_end = '.bench.ts';

async function loadBenches(): Promise<readonly Bench[]> {
  const files = (await readdir(new URL('.', import.meta.url), { recursive: true }))
    .filter((file) => file.endsWith(module_end))
    .sort();
  return Promise.all(
    files.map(async (file) => {
      const { bench } = (await import(`./${file}`)) as { readonly bench: Bench };
      return bench;
    }),
  );
}

async function measure(bench: Bench, long: boolean): Promise<readonly Measured[]> {
  const begin_ms = performance.now();
  const say = (sentence: string): void => console.error(`${bench.name}: ${sentence}`);
  try {
    const figures = await withDirectory(async (dir) =>
      bench.run({ long, dir, say, calm: async () => calm(say) }),
    );
    say(`done in ${Math.round((performance.now() - begin_ms) / 1000)} s`);
    return figures.map((figure) => ({ bench: bench.name, figure }));
  } catch (error) {
    // One bench that fails must not cost the figures of the others; the run as a whole fails at its end.
    console.error(error);
    process.exitCode = 1;
    return [{ bench: bench.name, figure: { figure: '-', value: null, unit: '', skipped: messageOf(error) } }];
  }
}

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { long: { type: 'boolean', default: false } },
});
const benches = await loadBenches();
const unknown = positionals.filter((name) => !benches.some((bench) => bench.name === name));
if (unknown.length > 0) {
  console.error(
    `no bench is called ${unknown.join(', ')}; there are: ${benches.map(({ name }) => name).join(', ')}`,
  );
  process.exit(2);
}
writeFileSync(results_file, '');
const all: Measured[] = [];
for (const bench of benches) {
  if (positionals.length > 0 && !positionals.includes(bench.name)) continue;
  const measured = await measure(bench, values.long);
  appendFileSync(results_file, measured.map(jsonLine).join(''));
  all.push(...measured);
}
process.stdout.write(table(all));
