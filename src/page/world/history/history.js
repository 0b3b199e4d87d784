/**
 * Reads the history of the kit from the service: one request at a time, since the service takes two of a key at once. An
 * answer is shown until the next one is there.
 */
import { t } from '../../words/words.js';
import { ask, reasonOf, Refused } from '../api.js';
import { field, listIn } from '../json.js';

/** @import { Sample, View } from '../../types.d.ts' */

/** @typedef {{ value: unknown, fault: string, status: number, path: string, wanted: string, from_ms: number }} Answer */
/** @typedef {Readonly<Pick<Answer, 'value' | 'fault' | 'status' | 'path'>> & { readonly isLoading: boolean }} Reading `isLoading`: neither an answer nor a fault yet */
/** @typedef {'asking' | 'on' | 'off' | 'missing' | 'failed'} HistoryState */
/** @typedef {Pick<View, 'choices' | 'link' | 'time_ms' | 'history'>} Asker */

const answers_max = 32;
const retry_ms = 15_000;
const status_ms = 60_000;

export class History {
  /** @type {Map<string, Answer>} */
  #answers = new Map();
  /** @type {() => void} */
  #onNews;
  #isBusy = false;

  /** @param {() => void} onNews called after each answer */
  constructor(onNews) {
    this.#onNews = onNews;
  }

  /**
   * The newest answer to this question about the kit, and asks for `path` when that is another one than was answered.
   * @param {Asker} view
   * @param {string} name of the question; its path changes with the time
   * @param {string} path below the kit
   * @returns {Reading}
   */
  read({ choices, link }, name, path) {
    const id = `${choices.kit_id} ${name}`;
    const answer = this.#answers.get(id) ?? this.#begin(id);
    answer.wanted = `/api/kits/${choices.kit_id}${path}`;
    if (link.state === 'live' && !this.#isBusy && isDue(answer)) void this.#work(answer);
    const { value, fault, status, path: answered } = answer;
    return { value, fault, status, path: answered, isLoading: answered === '' && fault === '' };
  }

  /**
   * Whether the service keeps history. A service that does not know the question is older than the history.
   * @param {Asker} view
   * @returns {HistoryState}
   */
  state(view) {
    const { value, status, path } = this.completeness(view);
    if (status === 404) return 'missing';
    if (path === '' && value === undefined) return status === 0 ? 'asking' : 'failed';
    return field(value, 'since') === null ? 'off' : value === undefined ? 'failed' : 'on';
  }

  /**
   * Asks at once whether the service keeps history, so that the screens that depend on it do not change after they were opened.
   * @param {Asker} view
   */
  prepare(view) {
    if (!this.#answers.get(`${view.choices.kit_id} completeness`)?.status) this.completeness(view);
  }

  /** @param {Asker} view */
  completeness(view) {
    // The fragment, which is not sent, makes the question another one each minute.
    const turn = Math.floor(view.time_ms / status_ms);
    return this.read(view, 'completeness', `/completeness#${turn}`);
  }

  /**
   * @param {string} id
   * @returns {Answer}
   */
  #begin(id) {
    const [oldest] = this.#answers.keys();
    if (this.#answers.size >= answers_max && oldest !== undefined) this.#answers.delete(oldest);
    const answer = { value: undefined, fault: '', status: 0, path: '', wanted: '', from_ms: 0 };
    this.#answers.set(id, answer);
    return answer;
  }

  /** @param {Answer} answer */
  async #work(answer) {
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

/** @param {Answer} answer */
function isDue({ path, wanted, from_ms }) {
  return path !== wanted && performance.now() >= from_ms;
}

/** Hours that may be chosen; 0: what this page saw, ten minutes. */
export const spans_h = [0, 1, 24, 168, 720];
const live_ms = 600_000;
const hour_ms = 3_600_000;

/** @typedef {{ readonly from_ms: number, readonly to_ms: number, readonly hours: number }} Span */

/**
 * The time that is shown: the chosen one where the service keeps history, else what this page saw. Its end moves in steps, so
 * that questions about it are asked rarely.
 * @param {View} view
 * @returns {Span}
 */
export function spanOf(view) {
  const { choices, time_ms, history } = view;
  const hours = history.state(view) === 'on' ? choices.hours : 0;
  if (hours === 0) return { from_ms: time_ms - live_ms, to_ms: time_ms, hours };
  const step_ms = hours === 1 ? 15_000 : hours === 24 ? 60_000 : 600_000;
  const to_ms = Math.ceil(time_ms / step_ms) * step_ms;
  return { from_ms: to_ms - hours * hour_ms, to_ms, hours };
}

/**
 * @param {Span} span
 * @returns {string} the parameters of a question about this time
 */
export function spanQuery({ from_ms, to_ms }) {
  return `from=${from_ms}&to=${to_ms}`;
}

const points = 200;
/** Kits repeat what does not change every 300 s. */
const repeated_ms = 330_000;

/** @typedef {{ readonly samples: ReadonlyMap<string, readonly Sample[]>, readonly gap_ms: number, readonly fault: string, readonly isLoading: boolean }} SeriesNow */

/**
 * Numbers over the time that is shown, by what selects them.
 * @param {View} view
 * @param {string} name
 * @param {readonly string[]} selected
 * @param {Span} span
 * @returns {SeriesNow}
 */
export function seriesNow(view, name, selected, span) {
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

/**
 * @param {unknown} series
 * @param {number} bucket_ms
 * @returns {readonly Sample[]} at the middle of each bucket
 */
function samplesOf(series, bucket_ms) {
  const means = listIn(field(series, 'mean'));
  return listIn(field(series, 't')).map((time, i) => ({
    time_ms: Date.parse(String(time)) + bucket_ms / 2,
    value: typeof means[i] === 'number' ? means[i] : null,
  }));
}

/**
 * @param {unknown} value the answer of `/completeness`
 * @returns {{ readonly received: number, readonly missing: number, readonly reasons: ReadonlyMap<string, number>, readonly more: number }} missing messages by their reasons ('': not explained), and gaps that the service does not list
 */
export function countsOf(value) {
  /** @type {Map<string, number>} */
  const reasons = new Map();
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
