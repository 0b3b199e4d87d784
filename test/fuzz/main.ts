/** `npm run fuzz`: fuzzes every parser in turn, keeps what reaches new code, and ends with 1 when something was found. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { distill, readCorpus, writeCorpus } from './corpus.ts';
import { fuzzTarget, type Target, threadCpu_ms } from './engine.ts';
import { instrument } from './instrument.ts';
import type { GroupedTarget } from './target-groups.ts';
import { watchHangs } from './watchdog.ts';

const coverage = instrument();
const { targets } = await import('./target-groups.ts');

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    inputs: { type: 'string' },
    target: { type: 'string' },
    seed: { type: 'string' },
    distill: { type: 'boolean', default: false },
    corpus: { type: 'string', default: join(import.meta.dirname, '../../node_modules/.cache/fuzz') },
  },
});

// Parsers refuse most of what they get: the engine reads what it reports once more, with its trace.
Error.stackTraceLimit = 0;
const now_ms = (): number => performance.now();
const seed = Number(values.seed ?? Date.now() % 1e9);
const chosen = targets.filter(({ name }) => values.target === undefined || name === values.target);
if (chosen.length === 0) {
  console.error(`no target ${values.target}; there are: ${targets.map(({ name }) => name).join(', ')}`);
  process.exit(64);
}
if (values.distill) {
  for (const target of chosen) await distillOne(target);
  process.exit(0);
}
const watchdog = watchHangs(values.corpus);
let current: { readonly target: Target; readonly input: Buffer } | undefined;
const watch = (target: Target, input: Buffer): void => {
  current = { target, input };
  watchdog(target, input);
};
// What is thrown in a handler of an event passes every caller by; it would have ended the daemon.
process.on('uncaughtException', (error) => {
  if (!current) throw error;
  const file = join(values.corpus, `finding-${current.target.name}-${digest(current.input)}`);
  writeFileSync(file, current.input);
  console.log(`${current.target.name} threw outside of its reader: ${error.stack}\n  input: ${file}`);
  process.exit(1);
});
const share_ms = (Number(values.minutes) * 60_000) / chosen.length;
const inputs_max = values.inputs === undefined ? Infinity : Number(values.inputs);
let [inputs, findings] = [0, 0];
console.log(`seed ${seed}, ${chosen.length} targets, ${Math.round(share_ms / 1_000)} s each`);
for (const target of chosen) await fuzz(target);
console.log(`${inputs} inputs, ${coverage.branches} branches reached, ${findings} findings`);
process.exit(findings > 0 ? 1 : 0);

async function fuzz(target: GroupedTarget): Promise<void> {
  const kept = [...readCorpus(target), ...cached(target)];
  const [began_ms, began_cpu_ms] = [now_ms(), threadCpu_ms()];
  const run = await fuzzTarget(target, {
    seed,
    inputs: inputs_max,
    coverage,
    now_ms,
    end_ms: began_ms + share_ms,
    cpu_ms: threadCpu_ms,
    kept,
    watch,
  });
  for (const input of run.kept) writeFileSync(join(folderOf(target), digest(input)), input);
  // Beside other work a second of the clock says nothing about the parser.
  const per_s = Math.round((run.inputs * 1_000) / (threadCpu_ms() - began_cpu_ms));
  console.log(
    `${target.name.padEnd(22)} ${String(run.inputs).padStart(10)} inputs, ${String(per_s).padStart(7)}/s of processor time, ` +
      `${run.kept.length} kept, ${run.findings.length} findings`,
  );
  inputs += run.inputs;
  findings += run.findings.length;
  for (const { what, input } of run.findings) {
    const file = join(values.corpus, `finding-${target.name}-${digest(input)}`);
    writeFileSync(file, input);
    console.log(`  ${what}\n  input: ${file} (${input.length} bytes)`);
  }
}

/** Makes the corpus that is kept with the sources from what earlier runs kept. */
async function distillOne(target: GroupedTarget): Promise<void> {
  const seeds = target.seeds.map((seed) => Buffer.from(seed));
  const kept = await distill(target, [...seeds, ...readCorpus(target), ...cached(target)], coverage);
  writeCorpus(target, kept);
  console.log(`${target.name.padEnd(22)} ${kept.length} inputs, ${Buffer.concat(kept).length} bytes`);
}

function cached(target: Target): readonly Buffer[] {
  const folder = folderOf(target);
  mkdirSync(folder, { recursive: true });
  return readdirSync(folder).map((name) => readFileSync(join(folder, name)));
}

function folderOf(target: Target): string {
  return join(values.corpus, target.name);
}

function digest(input: Buffer): string {
  return createHash('sha256').update(input).digest('hex').slice(0, 16);
}
