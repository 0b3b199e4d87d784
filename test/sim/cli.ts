/** What `npm run sim` does and prints. */
import { real } from './world/globals.ts';
import { type Played, play } from './play.ts';
import { kindOf, shrink } from './shrink.ts';
import { drawStory, type Story } from './story.ts';

export interface CliOptions {
  /** Stories to play; left out: fresh ones. */
  readonly seed?: readonly string[] | undefined;
  readonly minutes?: string | undefined;
  readonly stories?: string | undefined;
  /** First of the fresh seeds, which count up from it. */
  readonly from?: string | undefined;
  /** Numbers of the actions that are kept, counted from 0. */
  readonly only?: string | undefined;
  /** Only violations with this text count. */
  readonly like?: string | undefined;
  readonly trace: boolean;
  readonly shrink: boolean;
  /** Goes on after a story that failed. */
  readonly going: boolean;
  /** Prints the hash of each trace, so that two runs can be compared. */
  readonly hashes: boolean;
  readonly help: boolean;
  readonly write: (text: string) => void;
}

const help = `npm run sim -- [options]
  --minutes N    plays fresh stories for so long (1 when nothing is said)
  --stories N    plays so many fresh stories
  --from SEED    the first fresh seed, a number; they count up from it
  --seed SEED    plays this story, exactly as before; may be given more than once
  --only 3,7     with these of its actions alone
  --like TEXT    only violations with this text count
  --trace        prints everything that happens
  --shrink       makes a story that fails as short as it can
  --going        goes on after a story that failed
  --hashes       prints the hash of each trace: the same for the same code, however busy the machine is`;

const minutes_default = 1;
const tail_lines = 60;
/** The first stories are played again at the end: each must have the same trace, whatever was played before it. */
const again_max = 3;
const seeds = 1_000_000_000;

interface Totals {
  stories: number;
  events: number;
  virtual_ms: number;
  messages: number;
  readonly failed: string[];
  /** What the stories that are played again showed. */
  readonly first: Map<string, Pick<Played, 'hash' | 'events'>>;
  /** Had another trace when they were played again. */
  readonly strayed: string[];
  /** How many stories showed each kind of violation, and the first of them. */
  readonly kinds: Map<string, { stories: number; readonly seed: string; readonly like: string }>;
}

/** Answers the exit code: 1 when a story failed. */
export async function runCli(options: CliOptions): Promise<number> {
  const { write } = options;
  if (options.help) {
    write(help);
    return 0;
  }
  const from_ms = real.now_ms();
  const totals = emptyTotals();
  for (const seed of seedsOf(options, from_ms)) {
    const story = chosen(drawStory(seed), options.only);
    const played = await play(story);
    if (options.trace) write(played.trace);
    if (options.seed || options.hashes) write(`seed ${seed}: trace ${played.hash}, ${played.events} events`);
    if (!add(totals, seed, played, options)) continue;
    await tellFailure(story, played, options);
    if (!options.going) break;
  }
  if (!options.seed) await playAgain(totals, options);
  if (options.going) for (const line of kindLines(totals)) write(line);
  write(summary(totals, real.now_ms() - from_ms));
  return totals.failed.length + totals.strayed.length > 0 ? 1 : 0;
}

/** Answers whether the story failed. */
function add(totals: Totals, seed: string, played: Played, { like, going }: CliOptions): boolean {
  totals.stories += 1;
  totals.events += played.events;
  totals.virtual_ms += played.virtual_ms;
  totals.messages += played.messages;
  const is_failed = played.violations.some((text) => text.includes(like ?? ''));
  const { hash, events } = played;
  if (totals.first.size < again_max || (is_failed && !going)) totals.first.set(seed, { hash, events });
  if (!is_failed) return false;
  totals.failed.push(seed);
  count(totals, seed, played);
  return true;
}

function emptyTotals(): Totals {
  return {
    stories: 0,
    events: 0,
    virtual_ms: 0,
    messages: 0,
    failed: [],
    first: new Map(),
    strayed: [],
    kinds: new Map(),
  };
}

/**
 * A trace or a number of events that differs shows that the simulator lets something outlive a story, or lets the machine reach
 * into it: not all that happens is in the trace.
 */
async function playAgain({ first, strayed }: Totals, { only, write }: CliOptions): Promise<void> {
  for (const [seed, before] of first) {
    const { hash, events } = await play(chosen(drawStory(seed), only));
    if (hash === before.hash && events === before.events) continue;
    strayed.push(seed);
    const what = hash === before.hash ? `${events} events in place of ${before.events}` : 'another trace';
    write(`seed ${seed} had ${what} when it was played again: it depends on more than its seed`);
  }
}

/** Fresh seeds begin anywhere, so that each run plays other stories. */
function* seedsOf({ seed, stories, minutes, from, write }: CliOptions, from_ms: number): Generator<string> {
  if (seed) {
    yield* seed;
    return;
  }
  const first = from === undefined ? Math.floor(Math.random() * seeds) : Number(from);
  const count = stories === undefined ? Number.POSITIVE_INFINITY : Number(stories);
  const end_ms =
    stories === undefined ? from_ms + Number(minutes ?? minutes_default) * 60_000 : Number.POSITIVE_INFINITY;
  write(`seeds from ${first}`);
  for (let n = 0; n < count && real.now_ms() < end_ms; n++) yield String(first + n);
}

function chosen(story: Story, only: string | undefined): Story {
  if (only === undefined) return story;
  const kept = new Set(only.split(',').filter(Boolean).map(Number));
  return { ...story, actions: story.actions.filter((_, index) => kept.has(index)) };
}

async function tellFailure(
  story: Story,
  played: Played,
  { write, trace, going, shrink: wanted, only, like }: CliOptions,
) {
  if (going && !wanted) return;
  write(`\nseed ${story.seed} fails (${story.actions.length} actions, ${played.messages} messages):`);
  for (const violation of played.violations) write(`  - ${violation}`);
  if (wanted && only === undefined) {
    const { kept, violations, tail } = await shrink(story, played, like ?? '');
    write(`shrunk: npm run sim -- --seed ${story.seed} --only ${kept.join(',') || '-1'}`);
    for (const violation of violations) write(`  - ${violation}`);
    write(tail);
  } else if (!trace) {
    write(played.trace.split('\n').slice(-tail_lines).join('\n'));
    write(`again: npm run sim -- --seed ${story.seed} --trace`);
  }
}

function count({ kinds }: Totals, seed: string, { violations }: Played): void {
  for (const like of violations) {
    const kind = kindOf(like);
    const known = kinds.get(kind);
    if (known) known.stories += 1;
    else kinds.set(kind, { stories: 1, seed, like });
  }
}

function kindLines({ kinds }: Totals): readonly string[] {
  return [...kinds.values()]
    .sort((a, b) => b.stories - a.stories)
    .map(({ stories, seed, like }) => `${String(stories).padStart(5)} stories, first ${seed}: ${like}`);
}

function summary(
  { stories, events, virtual_ms, messages, failed, strayed }: Totals,
  real_ms: number,
): string {
  const seconds = real_ms / 1_000;
  const text = [
    `${stories} stories in ${seconds.toFixed(0)} s`,
    `${(virtual_ms / 3_600_000).toFixed(1)} simulated hours`,
    `${events} events, ${Math.round(events / seconds)} a second`,
    `${messages} messages`,
  ].join('; ');
  const wrong = [
    ...(failed.length > 0 ? [`${failed.length} failed: ${failed.join(' ')}`] : []),
    ...(strayed.length > 0 ? [`${strayed.length} differed when played again: ${strayed.join(' ')}`] : []),
  ];
  return [text, ...(wrong.length > 0 ? wrong : ['clean'])].join('; ');
}
