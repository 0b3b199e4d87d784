/** Logins of HTTP: reads the challenges of cameras, and answers those of digest (RFC 7616, RFC 2617). Pure. */
import { createHash } from 'node:crypto';

/** What is logged in to: one request. */
export interface DigestRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly body: string;
  readonly username: string;
  readonly password: string;
  /** Requests with this nonce so far, this one included. */
  readonly count: number;
  /** Random number of the client. */
  readonly cnonce: string;
}

/** From the weakest to the strongest, by their names in challenges without `-sess`. */
const hashes: ReadonlyMap<string, string> = new Map([
  ['md5', 'md5'],
  ['sha-256', 'sha256'],
  ['sha-512-256', 'sha512-256'],
]);
const strength = [...hashes.keys()];
const parameter = /([a-z-]{1,20})\s{0,8}=\s{0,8}(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/giu;
const session = /-sess$/u;

/** The value of `Authorization` for the strongest of these challenges that can be met; undefined where there is none. */
export function digestLogin(challenges: readonly string[], request: DigestRequest): string | undefined {
  const [best] = challenges
    .map(readChallenge)
    .filter((each) => each !== undefined)
    .toSorted((a, b) => strength.indexOf(b.name) - strength.indexOf(a.name));
  return best && answer(best, request);
}

interface Challenge {
  readonly name: string;
  readonly hash: string;
  /** The key is computed once for each session (RFC 7616, section 3.4.2). */
  readonly isSession: boolean;
  readonly quality: 'auth' | 'auth-int' | undefined;
  readonly parameters: ReadonlyMap<string, string>;
}

/** Undefined when it cannot be met. */
function readChallenge(challenge: string): Challenge | undefined {
  const [, rest] = /^digest\s+(.*)$/isu.exec(challenge) ?? [];
  if (rest === undefined) return undefined;
  const parameters = new Map(
    [...rest.matchAll(parameter)].map(([, key = '', quoted, plain]) => [
      key.toLowerCase(),
      quoted ?? plain ?? '',
    ]),
  );
  const algorithm = (parameters.get('algorithm') ?? 'MD5').toLowerCase();
  const name = algorithm.replace(session, '');
  const hash = hashes.get(name);
  const offered = parameters
    .get('qop')
    ?.toLowerCase()
    .split(/[\s,]+/u);
  const quality = (['auth', 'auth-int'] as const).find((each) => offered?.includes(each));
  const isUnknown = offered?.some((each) => each !== '') === true && quality === undefined;
  if (hash === undefined || isUnknown || !parameters.has('realm') || !parameters.has('nonce'))
    return undefined;
  return { name, hash, isSession: session.test(algorithm), quality, parameters };
}

function answer({ hash, isSession, quality, parameters }: Challenge, request: DigestRequest): string {
  const digest = (...parts: readonly string[]): string =>
    createHash(hash).update(parts.join(':')).digest('hex');
  const { method, path, body, username, password, count, cnonce } = request;
  const read = (key: string): string => parameters.get(key) ?? '';
  const nonce = read('nonce');
  // A quoted pair is part of what is hashed (RFC 7616, section 3.4), so the realm stays as it was sent.
  const name = username.replaceAll(/[\\"]/gu, String.raw`\$&`);
  const user = digest(username, read('realm'), password);
  const key = isSession ? digest(user, nonce, cnonce) : user;
  const what = quality === 'auth-int' ? [method, path, digest(body)] : [method, path];
  const nc = count.toString(16).padStart(8, '0');
  const between = quality === undefined ? [] : [nc, cnonce, quality];
  const fields = [
    `username="${name}"`,
    `realm="${read('realm')}"`,
    `nonce="${nonce}"`,
    `uri="${path}"`,
    ...(parameters.has('algorithm') ? [`algorithm=${read('algorithm')}`] : []),
    ...(quality === undefined ? [] : [`qop=${quality}`, `nc=${nc}`]),
    ...(quality === undefined && !isSession ? [] : [`cnonce="${cnonce}"`]),
    `response="${digest(key, nonce, ...between, digest(...what))}"`,
    ...(parameters.has('opaque') ? [`opaque="${read('opaque')}"`] : []),
  ];
  return `Digest ${fields.join(', ')}`;
}

/** Limits: challenges that are read, and characters of each; longer ones are ignored. */
const challenges_max = 8;
const challenge_chars_max = 2_048;
const scheme = /(?:^|,)\s{0,8}(?=(?:digest|basic|bearer|negotiate|ntlm)(?:\s|,|$))/giu;

/** The challenges of HTTP digest in the headers `WWW-Authenticate`, of which each may hold several of any kind. */
export function digestChallenges(headers: readonly string[]): readonly string[] {
  return challengesOf(headers).filter((each) => /^digest\s/iu.test(each));
}

export function canMeet(challenge: string): boolean {
  return readChallenge(challenge) !== undefined;
}

/** HTTP Basic (RFC 7617), which sends the password itself. */
export function offersBasic(headers: readonly string[]): boolean {
  return challengesOf(headers).some((each) => /^basic\b/iu.test(each));
}

function challengesOf(headers: readonly string[]): readonly string[] {
  return headers
    .slice(0, challenges_max)
    .filter((each) => each.length <= challenge_chars_max)
    .flatMap((each) => divided(each))
    .slice(0, challenges_max);
}

function divided(header: string): readonly string[] {
  // Commas and words within quotes divide nothing.
  const plain = header.replaceAll(/"[^"]*"/gu, (quoted) => '"'.repeat(quoted.length));
  const starts = [...plain.matchAll(scheme)].map(({ index, 0: found }) => ({
    end: index,
    begin: index + found.length,
  }));
  return starts.map(({ begin }, at) => header.slice(begin, starts[at + 1]?.end).trim());
}
