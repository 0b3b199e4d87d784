/**
 * Reads the history of the kit from the service: one request at a time, since the service takes two of a key at once. An
 * answer is shown until the next one is there.
 */
import { t } from '../../words/words.ts';
import { ask, reasonOf, Refused } from '../api.ts';
import { field, listIn } from '../../json.ts';
import type { Asker, HistoryAnswers, Reading, Sample, View } from '../../types.d.ts';

interface Answer {
  value: unknown;
  fault: string;
  status: number;
  path: string;
  wanted: string;
  from_ms: number;
}

const answers_max = 32;
const retry_ms = 15_000;
const status_ms = 60_000;

export class History implements HistoryAnswers {
  #answers: Map<string, Answer> = new Map();
  #onNews: () => void;
  #isBusy = false;

  /** @param onNews called after each answer */
  constructor(onNews: () => void) {
    this.#onNews = onNews;
  }

  /**
   * The newest answer to this question about the kit, and asks for `path` when that is another one than was answered.
   * @param name of the question; its path changes with the time
   * @param path below the kit, or from `/api` on
   */
  read({ choices, link }: Asker, name: string, path: string): Reading {
    const isOfAll = path.startsWith('/api/');
    const id = isOfAll ? name : `${choices.kit_id} ${name}`;
    const answer = this.#answers.get(id) ?? this.#begin(id);
    answer.wanted = isOfAll ? path : `/api/kits/${choices.kit_id}${path}`;
    if (link.state === 'live' && !this.#isBusy && isDue(answer)) void this.#work(answer);
    const { value, fault, status, path: answered } = answer;
    return { value, fault, status, path: answered, isLoading: answered === '' && fault === '' };
  }

  /** Whether the service keeps history. A service that does not know the question is older than the history. */
  state(view: Asker): ReturnType<HistoryAnswers['state']> {
    const { value, status, path } = this.completeness(view);
    if (status === 404) return 'missing';
    if (path === '' && value === undefined) return status === 0 ? 'asking' : 'failed';
    return field(value, 'since') === null ? 'off' : value === undefined ? 'failed' : 'on';
  }

  /** Asks at once whether the service keeps history, so that the screens that depend on it do not change after they were opened. */
  prepare(view: Asker) {
    if (!this.#answers.get(`${view.choices.kit_id} completeness`)?.status) this.completeness(view);
  }

  completeness(view: Asker): Reading {
    // The fragment, which is not sent, makes the question another one each minute.
    const turn = Math.floor(view.time_ms / status_ms);
    return this.read(view, 'completeness', `/completeness#${turn}`);
  }

  #begin(id: string): Answer {
    const [oldest] = this.#answers.keys();
    if (this.#answers.size >= answers_max && oldest !== undefined) this.#answers.delete(oldest);
    const answer = { value: undefined, fault: '', status: 0, path: '', wanted: '', from_ms: 0 };
    this.#answers.set(id, answer);
    return answer;
  }

  async #work(answer: Answer) {
    this.#isBusy = true;
    const path = answer.wanted;
    try {
      answer.value = await ask('GET', path);
      answer.fault = '';
      answer.status = 200;
      answer.path = path;
    } catch (error) {
      answer.fault = reasonOf(error, t.trouble.noAnswer);
      answer.status = error instanceof Refused ? error.status : 503;
      answer.from_ms = performance.now() + retry_ms;
    }
    this.#isBusy = false;
    // Drawing asks for what is still wanted.
    this.#onNews();
  }
}

function isDue({ path, wanted, from_ms }: Answer) {
  return path !== wanted && performance.now() >= from_ms;
}

/** Hours that may be chosen; 0: what this page saw, ten minutes. */
export const spans_h = [0, 1, 24, 168, 720];
const live_ms = 600_000;
const hour_ms = 3_600_000;

export interface Span {
  readonly from_ms: number;
  readonly to_ms: number;
  readonly hours: number;
}

/**
 * The time that is shown: the chosen one where the service keeps history, else what this page saw. Its end moves in steps, so
 * that questions about it are asked rarely.
 */
export function spanOf(view: View): Span {
  const { choices, time_ms, history } = view;
  const hours = history.state(view) === 'on' ? choices.hours : 0;
  if (hours === 0) return { from_ms: time_ms - live_ms, to_ms: time_ms, hours };
  const step_ms = hours === 1 ? 15_000 : hours === 24 ? 60_000 : 600_000;
  const to_ms = Math.ceil(time_ms / step_ms) * step_ms;
  return { from_ms: to_ms - hours * hour_ms, to_ms, hours };
}

/** @returns the parameters of a question about this time */
export function spanQuery({ from_ms, to_ms }: Span): string {
  return `from=${from_ms}&to=${to_ms}`;
}

const points = 200;
/** Kits repeat what does not change every 300 s. */
const repeated_ms = 330_000;

export interface SeriesNow {
  readonly samples: ReadonlyMap<string, readonly Sample[]>;
  readonly gap_ms: number;
  readonly fault: string;
  readonly isLoading: boolean;
}

/** Numbers over the time that is shown, by what selects them. */
export function seriesNow(view: View, name: string, selected: readonly string[], span: Span): SeriesNow {
  const select = selected.map(encodeURIComponent).join(',');
  const { value, fault, isLoading } = view.history.read(
    view,
    `series ${name} ${span.hours}`,
    `/series?select=${select}&points=${points}&${spanQuery(span)}`,
  );
  const bucket_ms = Number(field(value, 'bucket_ms') ?? 0);
  const samples = new Map(
    listIn(field(value, 'series')).map((each) => [String(field(each, 'select')), samplesOf(each, bucket_ms)]),
  );
  return { samples, gap_ms: bucket_ms + repeated_ms, fault, isLoading };
}

/** @returns at the middle of each bucket */
function samplesOf(series: unknown, bucket_ms: number): readonly Sample[] {
  const means = listIn(field(series, 'mean'));
  return listIn(field(series, 't')).map((time, i) => ({
    time_ms: Date.parse(String(time)) + bucket_ms / 2,
    value: typeof means[i] === 'number' ? means[i] : null,
  }));
}

/**
 * @param value the answer of `/completeness`
 * @returns missing messages by their reasons ('': not explained), and gaps that the service does not list
 */
export function countsOf(value: unknown): {
  readonly received: number;
  readonly missing: number;
  readonly reasons: ReadonlyMap<string, number>;
  readonly more: number;
} {
  const reasons: Map<string, number> = new Map();
  let received = 0;
  let missing = 0;
  let more = 0;
  for (const epoch of listIn(field(value, 'epochs'))) {
    more += Number(field(epoch, 'more') ?? 0);
    received += Number(field(epoch, 'received') ?? 0);
    for (const stretch of listIn(field(epoch, 'missing'))) {
      const n = Number(field(stretch, 'messages') ?? 0);
      const why = listIn(field(stretch, 'reasons')).map(String).join(', ');
      missing += n;
      reasons.set(why, (reasons.get(why) ?? 0) + n);
    }
  }
  return { received, missing, reasons, more };
}
