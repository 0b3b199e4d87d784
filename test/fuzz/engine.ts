/** Coverage-guided fuzzing of one parser: inputs that reach new code are kept and mutated further. */
import { threadCpuUsage } from 'node:process';
import { seededRandom } from '../support/random.ts';
import type { Coverage } from './instrument.ts';
import { type Material, mutate } from './mutate.ts';

/** A parser and what may come of a hostile input. */
export interface Target {
  readonly name: string;
  /** Reads the input; may throw only what `allows` accepts. */
  readonly read: (input: Buffer) => unknown;
  readonly allows: (error: unknown) => boolean;
  readonly seeds: readonly (string | Buffer)[];
  readonly dictionary: readonly string[];
  readonly bytes_max: number;
}

export interface Finding {
  readonly target: string;
  readonly what: string;
  readonly input: Buffer;
}

export interface FuzzRun {
  readonly inputs: number;
  readonly kept: readonly Buffer[];
  readonly findings: readonly Finding[];
}

type Clocks = Pick<FuzzLimits, 'now_ms' | 'cpu_ms'>;

export interface FuzzLimits {
  readonly seed: number;
  readonly inputs: number;
  readonly coverage: Pick<Coverage, 'reachedMore'>;
  readonly now_ms: () => number;
  readonly end_ms: number;
  /** Processor time of this thread: a machine that is busy elsewhere makes no input slow. */
  readonly cpu_ms: () => number;
  /** Inputs kept by earlier runs. */
  readonly kept?: readonly Buffer[];
}

/** Inputs that reach new code and are kept; beyond it a random one is replaced. */
const corpus_max = 2_000;
/** No input of at most `bytes_max` may take so much processor time, three times in a row. */
const slow_ms = 1_000;
const slow_attempts = 3;
const findings_max = 20;

/** Runs until the inputs, the time or the patience for findings is used up. */
export function fuzzTarget(target: Target, limits: FuzzLimits): FuzzRun {
  const { coverage, now_ms, end_ms } = limits;
  const random = seededRandom(limits.seed);
  const corpus = [...target.seeds.map((seed) => Buffer.from(seed)), ...(limits.kept ?? [])];
  const dictionary = target.dictionary.map((token) => Buffer.from(token, 'latin1'));
  const material: Material = { corpus, dictionary, bytes_max: target.bytes_max };
  const kept: Buffer[] = [];
  const findings = new Map<string, Finding>();
  const feed = (input: Buffer): void => {
    const what = outcome(target, input, limits);
    if (what !== undefined && !findings.has(what)) findings.set(what, { target: target.name, what, input });
  };
  for (const input of corpus) feed(input);
  coverage.reachedMore();
  let inputs = corpus.length;
  while (inputs < limits.inputs && now_ms() < end_ms && findings.size < findings_max) {
    const input = mutate(random, material);
    feed(input);
    inputs += 1;
    if (!coverage.reachedMore()) continue;
    kept.push(input);
    if (corpus.length < corpus_max) corpus.push(input);
    else corpus[random.below(corpus.length)] = input;
  }
  return { inputs, kept, findings: [...findings.values()] };
}

/** What is wrong with how the target took the input; undefined: nothing. */
function outcome(target: Target, input: Buffer, { now_ms, cpu_ms }: Clocks): string | undefined {
  // Reading the processor's clock costs as much as many an input: it is read once the wall clock raises a suspicion.
  const began_ms = now_ms();
  const fault = faultOf(target, input);
  if (fault !== undefined || now_ms() - began_ms < slow_ms) return fault;
  for (let attempt = 0; attempt < slow_attempts; attempt += 1) {
    const spent_ms = cpu_ms();
    faultOf(target, input);
    if (cpu_ms() - spent_ms < slow_ms) return undefined;
  }
  return `took more than ${slow_ms} ms of processor time`;
}

function faultOf(target: Target, input: Buffer): string | undefined {
  try {
    target.read(input);
    return undefined;
  } catch (error) {
    return target.allows(error) ? undefined : `threw ${describe(error)}`;
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const [, place = ''] = /\n\s+at (.*)/u.exec(error.stack ?? '') ?? [];
  return `${error.name} at ${place}: ${error.message.slice(0, 80)}`;
}

/** For `FuzzLimits.cpu_ms`: of this thread alone, since collecting garbage in others is not the parser's. */
export function threadCpu_ms(): number {
  const { user, system } = threadCpuUsage();
  return (user + system) / 1_000;
}
