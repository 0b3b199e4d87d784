/** Asks one radio over ubus: one request at a time, in one session that is renewed once when it was lost. */
import { z } from 'zod';
import { CommandRefused, DeviceUnreachable, notSent, RetryLater } from '../../../src/platform/errors.ts';
import { credentialsHash, type LoginGuard } from '../../../src/toolkit/device/login-guard.ts';
import type { PinnedHttp, HttpReply } from '../../../src/toolkit/device/pinned-http.ts';
import type { Limits } from '../limits.ts';
import {
  type Answer,
  answersIn,
  answerWords,
  type Call,
  isBatchRefused,
  listIn,
  no_session,
  requestText,
  ubus_status,
} from './ubus-wire.ts';
import { texts } from '../texts.ts';

export interface UbusParts {
  readonly http: Pick<PinnedHttp, 'get' | 'post'>;
  readonly path: string;
  readonly username: string;
  /** Read again for each login. */
  readonly password: () => Promise<string>;
  readonly limits: Limits;
  readonly guard: LoginGuard;
}

const loginReply = z.looseObject({
  ubus_rpc_session: z.string().regex(/^[0-9a-f]{32}$/u),
  acls: z.unknown().optional(),
});

interface Session {
  readonly sid: string;
  readonly grants: Grants;
  /** Monotonic. */
  readonly opened_ms: number;
}

/** Logins for one request: where a radio has one session for its user, another client ends ours at any time. */
const relogins_max = 3;
/** A session that is used does not end by time; if it ends sooner than this, another client ended it. */
const contested_ms = 60_000;
const taken: Answer = { kind: 'failed', sentence: texts.session_taken };

interface AskOptions {
  readonly deadline_ms?: number;
  /** Checked at the turn of the request. */
  readonly signal?: AbortSignal;
}

export class Ubus {
  readonly #parts: UbusParts;
  #session: Session | undefined;
  #next_id = 1;
  /** Until it refuses one. */
  #knowsBatches = true;
  #waiting = 0;
  #last: Promise<unknown> = Promise.resolve();
  /** Number of lost sessions; staged changes are lost with them. */
  losses = 0;
  /** What it has instead of ubus, once it has shown it. */
  #other: string | undefined;
  /** How many sessions in a row another client has ended. */
  contested = 0;

  constructor(parts: UbusParts) {
    this.#parts = parts;
  }

  /** Rights of the login; undefined before the first call. */
  get grants(): Grants | undefined {
    return this.#session?.grants;
  }

  /** Names of the radio's objects, without a session. */
  async list(): Promise<readonly string[]> {
    return this.#inTurn(async () => this.#list());
  }

  /** Logs in when there is no session. Rejects with the reason when that fails. */
  async open(): Promise<Grants> {
    return this.#inTurn(async () => (await this.#open()).grants);
  }

  /** One answer for each call, in order. Rejects when the radio does not answer or refuses the login. */
  async ask(calls: readonly Call[], options: AskOptions = {}): Promise<readonly Answer[]> {
    return this.#inTurn(async () => this.#ask(calls, options));
  }

  /** The same for one call. */
  async askOne(call: Call, options: AskOptions = {}): Promise<Answer> {
    const [answer] = await this.ask([call], options);
    return answer ?? { kind: 'failed', sentence: 'no answer' };
  }

  async #ask(calls: readonly Call[], options: AskOptions): Promise<readonly Answer[]> {
    if (options.signal?.aborted) throw new CommandRefused(notSent(texts.stopped_before));
    const before = this.#session;
    const session = await this.#open();
    let answers = await this.#exchange(calls, session.sid, options);
    if (answers.some(({ kind }) => kind === 'absent')) await this.#checkRpcd();
    let isNew = session !== before;
    for (let logins = 0; logins < relogins_max && this.#isLost(calls, answers, isNew); logins += 1) {
      answers = await this.#askAnew(calls, answers, options);
      isNew = true;
    }
    if (!this.#isLost(calls, answers, isNew)) return answers;
    return answers.map((answer) => (answer.kind === 'denied' ? taken : answer));
  }

  /**
   * A new session that is denied what its login granted was ended too; without the right another login would not help, nor
   * where the same session answers other calls: such a radio denies this one.
   */
  #isLost(calls: readonly Call[], answers: readonly Answer[], isNew: boolean): boolean {
    if (isNew && answers.some(({ kind }) => kind === 'ok')) return false;
    return calls.some((call, index) => {
      if (answers[index]?.kind !== 'denied') return false;
      return !isNew || this.#session?.grants.mayCall(call) === true;
    });
  }

  /** A denied call was not executed, so it may be sent again. */
  async #askAnew(
    calls: readonly Call[],
    answers: readonly Answer[],
    options: AskOptions,
  ): Promise<readonly Answer[]> {
    const denied = calls.filter((_call, index) => answers[index]?.kind === 'denied');
    const age_ms = performance.now() - (this.#session?.opened_ms ?? 0);
    this.#session = undefined;
    this.losses += 1;
    this.contested = age_ms < contested_ms ? this.contested + 1 : 0;
    const fresh = await this.#open();
    const again = [...(await this.#exchange(denied, fresh.sid, options))];
    return answers.map((answer) => (answer.kind === 'denied' ? (again.shift() ?? answer) : answer));
  }

  async #open(): Promise<Session> {
    if (this.#session) return this.#session;
    const { username, limits, guard } = this.#parts;
    const password = await this.#parts.password();
    const credentials = credentialsHash(username, password);
    guard.admit(credentials);
    const args = { username, password };
    const [answer] = await this.#exchange([{ object: 'session', method: 'login', args }], no_session, {});
    if (answer?.kind === 'status' && answer.code === ubus_status.permission_denied) {
      throw await guard.refuse(credentials, texts.login_refused(username));
    }
    if (answer?.kind === 'absent') throw this.#rpcdIsDown();
    if (answer?.kind !== 'ok') {
      throw new DeviceUnreachable(texts.login_answer(answer ? answerWords(answer) : 'nothing'));
    }
    const read = loginReply.safeParse(answer.body);
    if (!read.success) throw new DeviceUnreachable(texts.login_no_session);
    await guard.accept(credentials);
    const grants = readGrants(read.data.acls);
    if (grants.isEmpty) {
      throw new RetryLater(texts.login_no_rights(username), limits.rightless_retry_ms);
    }
    this.#session = { sid: read.data.ubus_rpc_session, grants, opened_ms: performance.now() };
    return this.#session;
  }

  /** A missing object while `session` is missing too means that rpcd is restarting. */
  async #checkRpcd(): Promise<void> {
    const names = await this.#list();
    if (names.length > 0 && !names.includes('session')) {
      this.#session = undefined;
      this.losses += 1;
      throw this.#rpcdIsDown();
    }
  }

  #rpcdIsDown(): RetryLater {
    return new RetryLater(texts.rpcd_restarting, this.#parts.limits.rpcd_retry_ms);
  }

  async #list(): Promise<readonly string[]> {
    const request = { jsonrpc: '2.0', id: this.#next_id++, method: 'list', params: [] };
    return listIn(await this.#post(JSON.stringify(request), this.#parts.limits.request_ms));
  }

  async #exchange(
    calls: readonly Call[],
    sid: string,
    { deadline_ms = this.#parts.limits.request_ms }: AskOptions,
  ): Promise<readonly Answer[]> {
    if (calls.length < 2 || this.#knowsBatches) {
      const body = requestText(calls, sid, this.#next_id);
      this.#next_id += calls.length;
      const text = await this.#post(body, deadline_ms);
      if (calls.length < 2 || !isBatchRefused(text)) return answersIn(text, calls.length);
      this.#knowsBatches = false;
    }
    const answers: Answer[] = [];
    for (const call of calls) answers.push(...(await this.#exchange([call], sid, { deadline_ms })));
    return answers;
  }

  async #post(body: string, deadline_ms: number): Promise<string> {
    const { http, path, limits } = this.#parts;
    if (Buffer.byteLength(body) > limits.request_bytes_max) {
      throw new CommandRefused(texts.request_too_large);
    }
    const reply = await http.post(path, body, { deadline_ms });
    const { status, text } = reply;
    const isPage = status === 200 && text.trimStart().startsWith('<');
    if (status === 200 && !isPage) return text;
    const what = isPage ? texts.answer_page : texts.http_status(status);
    if (status >= 500) throw new DeviceUnreachable(what);
    const usual = status >= 300 && status < 400 ? texts.needs_https : texts.other_unknown;
    this.#other ??= await otherInterface(http, reply, limits.request_ms);
    throw new DeviceUnreachable(texts.no_ubus(what, this.#other ?? usual));
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#waiting >= this.#parts.limits.waiting_max) {
      throw new DeviceUnreachable(texts.queue_full);
    }
    this.#waiting += 1;
    const done = this.#last.then(work).finally(() => {
      this.#waiting -= 1;
    });
    this.#last = done.catch(() => undefined);
    return done;
  }
}

// Rights of a login, read from the `acls` of the login's reply, so that no call is tried to find out.

interface Grants {
  readonly isEmpty: boolean;
  readonly mayCall: (call: Pick<Call, 'object' | 'method'>) => boolean;
  /** Of the object `file`: whether this path may be read or written. */
  readonly mayFile: (path: string, how: 'read' | 'write') => boolean;
  /** Whether this uci configuration may be read or changed. */
  readonly mayUci: (config: string, how: 'read' | 'write') => boolean;
}

/** Pattern to the allowed names. */
const rights = z.record(z.string(), z.array(z.string())).catch({});
const acls = z.looseObject({ ubus: rights, file: rights, uci: rights }).partial().catch({});

/** A pattern of names, and one of the rights that it grants. */
type Right = readonly [pattern: string, right: string];

/** Of each kind of object. A radio with all of LuCI has some 600; the others of a hostile one count for nothing. */
const rights_max = 2_048;
/** Of a pattern; what it is compared with is shorter. */
const pattern_chars_max = 64;

export function readGrants(raw: unknown): Grants {
  const { ubus = {}, file = {}, uci = {} } = acls.parse(raw ?? {});
  const of = { ubus: rightsIn(ubus), file: rightsIn(file), uci: rightsIn(uci) };
  return {
    isEmpty: Object.keys(ubus).length === 0,
    mayCall: ({ object, method }) => allows(of.ubus, object, method),
    mayFile: (path, how) => allows(of.ubus, 'file', how) && allows(of.file, path, how),
    mayUci: (config, how) => allows(of.uci, config, how),
  };
}

function rightsIn(granted: Readonly<Record<string, readonly string[]>>): readonly Right[] {
  const found: Right[] = [];
  for (const [pattern, names] of Object.entries(granted)) {
    for (const name of names) {
      if (found.length === rights_max) return found;
      if (Math.max(pattern.length, name.length) <= pattern_chars_max) found.push([pattern, name]);
    }
  }
  return found;
}

function allows(rights: readonly Right[], name: string, wanted: string): boolean {
  return rights.some(([pattern, right]) => isMatch(right, wanted) && isMatch(pattern, name));
}

/**
 * rpcd compares with fnmatch(3), where a star matches slashes too. Without a regular expression: the pattern is the radio's, and one
 * of thirty stars would take years.
 */
export function isMatch(pattern: string, name: string): boolean {
  let [at, of_name] = [0, 0];
  // The last star, and up to where it reaches.
  let [star, reach] = [-1, 0];
  while (of_name < name.length) {
    const sign = pattern[at];
    if (sign === '*') {
      star = at;
      reach = of_name;
      at += 1;
    } else if (sign !== undefined && (sign === '?' || sign === name[of_name])) {
      at += 1;
      of_name += 1;
    } else if (star >= 0) {
      reach += 1;
      at = star + 1;
      of_name = reach;
    } else return false;
  }
  return /^\**$/u.test(pattern.slice(at));
}

// Recognises a device that has another interface than ubus, so that the advice names what can be done. No request holds a login.

type Http = Pick<PinnedHttp, 'get' | 'post'>;

interface Sign {
  readonly path: string;
  /** Posted; left out, it is a GET. */
  readonly body?: string;
  /** What the answer shows, where it is of such a device. */
  readonly shows: (reply: HttpReply) => string | undefined;
}

const json_rpc = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'nodeid', params: [] });
const title = /<title[^>]*>\s*([^<]{1,80}?)\s*</iu;
/** The head of a page is shorter. */
const page_chars_max = 4_096;

/** Where a device shows what it is, the most telling first. Sources of each are beside its test. */
const signs: readonly Sign[] = [
  {
    path: '/api/unauthorized/status',
    shows: ({ text }) => (isRutos(text) ? texts.other_rutos : undefined),
  },
  ...['/streamscape_api', '/cgi-bin/streamscape_api'].map((path) => ({
    path,
    body: json_rpc,
    shows: ({ status, text }: HttpReply) =>
      status === 200 && text.includes('"jsonrpc"') ? texts.other_silvus(path) : undefined,
  })),
  {
    path: '/',
    shows({ status, text, cookies }) {
      if (cookies.some((cookie) => cookie.startsWith('AIROS_'))) return texts.other_airos;
      const page = status === 200 ? text.slice(0, page_chars_max) : '';
      if (page.includes('LuCI - Lua Configuration Interface')) return texts.other_luci;
      const name = title.exec(page)?.[1];
      if (name === undefined) return undefined;
      return /^routeros/iu.test(name) ? texts.other_routeros : texts.other_page(name);
    },
  },
];

/** The form of every answer of its interface. */
function isRutos(text: string): boolean {
  return /"success"\s*:\s*(?:true|false)/u.test(text) && /"device_?model"|"source"\s*:/iu.test(text);
}

/** `refusal`: the answer at the path of ubus. Undefined: the device does not show what it is. */
async function otherInterface(
  http: Http,
  refusal: HttpReply,
  deadline_ms: number,
): Promise<string | undefined> {
  if (isRutos(refusal.text)) return texts.other_rutos;
  const get = async (path: string) => http.get(path, { deadline_ms }).catch(() => undefined);
  for (const { path, body, shows } of signs) {
    const reply =
      body === undefined
        ? await get(path)
        : await http.post(path, body, { deadline_ms }).catch(() => undefined);
    const shown = reply && shows(reply);
    if (shown !== undefined) return shown;
    // Many start pages lead to that of the login.
    const next = path === '/' ? pathIn(reply?.location) : undefined;
    const second = next === undefined ? undefined : await get(next);
    const shown_there = second && shows(second);
    if (shown_there !== undefined) return shown_there;
  }
  return undefined;
}

/** Of an address on the device itself, whatever host it names. */
function pathIn(location: string | undefined): string | undefined {
  const url = location === undefined ? null : URL.parse(location, 'http://device/');
  const path = url ? `${url.pathname}${url.search}` : '/';
  return path === '/' ? undefined : path;
}
