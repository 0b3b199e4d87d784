/** Coverage-guided fuzzing of one parser: inputs that reach new code are kept and mutated further. */
import { threadCpuUsage } from 'node:process';
import { seededRandom } from '../support/random.ts';
import type { Coverage } from './instrument.ts';
import { type Material, mutate } from './mutate.ts';
import type { Make } from './structures.ts';

/** A parser and what may come of a hostile input. */
export interface Target {
  readonly name: string;
  /** Reads the input; may throw only what `allows` accepts. A promise is waited for. */
  readonly read: (input: Buffer) => unknown;
  readonly allows: (error: unknown) => boolean;
  readonly seeds: readonly (string | Buffer)[];
  readonly dictionary: readonly string[];
  readonly bytes_max: number;
  /** Makes inputs with the structure of the format, where bytes that are changed by chance hardly ever keep it. */
  readonly make?: Make;
}

/** For the dictionaries of parsers of JSON. */
export const json_punctuation = ['{', '}', '[', ']', ',', ':', '"'] as const;

export interface Finding {
  readonly target: string;
  /** Tells one fault from others: two inputs with the same one are one finding. */
  readonly key: string;
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
  /** Called before each input is read, so that one that is never done can be named. */
  readonly watch?: (target: Target, input: Buffer) => void;
}

/** Inputs that reach new code and are kept; beyond it a random one is replaced. */
const corpus_max = 2_000;
/** No input of at most `bytes_max` may take so much processor time, three times in a row. */
const slow_ms = 100;
const slow_attempts = 3;
const findings_max = 20;
/** Enough to get past the frames of Node.js. */
const trace_lines = 30;

/** Runs until the inputs, the time or the patience for findings is used up. */
export async function fuzzTarget(target: Target, limits: FuzzLimits): Promise<FuzzRun> {
  const { coverage, now_ms, end_ms } = limits;
  const random = seededRandom(limits.seed);
  const corpus = [...target.seeds.map((seed) => Buffer.from(seed)), ...(limits.kept ?? [])];
  const dictionary = target.dictionary.map((token) => Buffer.from(token, 'latin1'));
  const { bytes_max, make } = target;
  const material: Material = { corpus, dictionary, bytes_max, make };
  const kept: Buffer[] = [];
  const findings = new Map<string, Finding>();
  const feed = (input: Buffer): void | Promise<void> => {
    limits.watch?.(target, input);
    const note = (fault: Fault): void => {
      if (fault && !findings.has(fault.key))
        findings.set(fault.key, { target: target.name, ...fault, input });
    };
    const fault = outcome(target, input, limits);
    return fault instanceof Promise ? fault.then(note) : note(fault);
  };
  for (const input of corpus) await feed(input);
  coverage.reachedMore();
  let inputs = corpus.length;
  while (inputs < limits.inputs && now_ms() < end_ms && findings.size < findings_max) {
    const input = mutate(random, material);
    const fed = feed(input);
    // Most parsers answer at once, and a wait would cost more than many of them.
    if (fed) await fed;
    inputs += 1;
    if (!coverage.reachedMore()) continue;
    kept.push(input);
    if (corpus.length < corpus_max) corpus.push(input);
    else corpus[random.below(corpus.length)] = input;
  }
  return { inputs, kept, findings: [...findings.values()] };
}

type Fault = Pick<Finding, 'key' | 'what'> | undefined;

/** What is wrong with how the target took the input; undefined: nothing. */
function outcome(target: Target, input: Buffer, clocks: Clocks): Fault | Promise<Fault> {
  // Reading the processor's clock costs as much as many an input: it is read once the wall clock raises a suspicion.
  const began_ms = clocks.now_ms();
  const judge = (fault: Fault): Fault | Promise<Fault> =>
    fault !== undefined || clocks.now_ms() - began_ms < slow_ms ? fault : slowness(target, input, clocks);
  const fault = faultOf(target, input);
  return fault instanceof Promise ? fault.then(judge) : judge(fault);
}

async function slowness(target: Target, input: Buffer, { cpu_ms }: Clocks): Promise<Fault> {
  for (let attempt = 0; attempt < slow_attempts; attempt += 1) {
    const spent_ms = cpu_ms();
    await faultOf(target, input);
    if (cpu_ms() - spent_ms < slow_ms) return undefined;
  }
  return { key: 'slow', what: `took more than ${slow_ms} ms of processor time` };
}

function faultOf(target: Target, input: Buffer): Fault | Promise<Fault> {
  const judge = (error: unknown): Fault | Promise<Fault> =>
    target.allows(error) ? undefined : traced(target, input, error);
  try {
    const read = target.read(input);
    return read instanceof Promise ? read.then(() => undefined, judge) : undefined;
  } catch (error) {
    return judge(error);
  }
}

/** Reads the input once more with the traces of errors, which cost more than many a parser and are off otherwise. */
async function traced(target: Target, input: Buffer, first: unknown): Promise<Fault> {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = trace_lines;
  try {
    await target.read(input);
    return thrown(first);
  } catch (error) {
    return thrown(error);
  } finally {
    Error.stackTraceLimit = limit;
  }
}

/** The place is in the project or a library: Node.js throws at one place, with other numbers each time, for many faults. */
export function thrown(error: unknown): Pick<Finding, 'key' | 'what'> {
  if (!(error instanceof Error)) return { key: 'no error', what: `threw ${String(error).slice(0, 80)}` };
  const frames = [...(error.stack ?? '').matchAll(/\n\s+at (.*)/gu)].map(([, frame = '']) => frame);
  const place = frames.find((frame) => !/^(?:.*\()?(?:node:|<anonymous>|native)/u.test(frame));
  const code = 'code' in error && typeof error.code === 'string' ? ` ${error.code}` : '';
  const kind = `${error.name}${code} at ${place ?? 'an unknown place'}`;
  const message = error.message.slice(0, 80);
  // Without a place only the sentence tells faults apart.
  const key = place === undefined ? `${kind} ${message.replaceAll(/\d+/gu, '0')}` : kind;
  return { key, what: `threw ${kind}: ${message}` };
}

/** For `FuzzLimits.cpu_ms`: of this thread alone, since collecting garbage in others is not the parser's. */
export function threadCpu_ms(): number {
  const { user, system } = threadCpuUsage();
  return (user + system) / 1_000;
}
