/** Meaning of the cameras' error codes, as sentences for the technician. See the vendor's Camera HTTP API guide, "Error codes". */

export type FaultKind =
  /** The session is gone: log in again, once. */
  | 'session'
  /** Wrong name or password, or a locked account: do not retry. */
  | 'credentials'
  /** No free session, or too many logins: wait long. */
  | 'sessions_full'
  | 'privacy'
  /** May work a moment later. */
  | 'passing'
  | 'unsupported'
  | 'too_large'
  | 'forbidden'
  | 'bad_request'
  | 'channel_offline'
  | 'unknown';

export interface Fault {
  readonly code: number;
  /** Text of the device. */
  readonly detail: string;
  readonly kind: FaultKind;
  /** For the technician or the operator. */
  readonly sentence: string;
}

const locked =
  'the account is locked after too many failed logins; unlock it or restart the camera, correct the password file, then reload the configuration';
const wrong =
  'user name or password rejected; correct username and password_file, then reload the configuration';
const full =
  'all sessions of the device are in use; close other programs and apps that are logged in, or use a separate user for each';

/** -500 to -506 are added below. */
const known: ReadonlyMap<number, readonly [FaultKind, string]> = new Map([
  [-1, ['bad_request', 'the request lacks a parameter that the device requires; its firmware may differ']],
  [-4, ['bad_request', 'the device rejected a parameter; its firmware may differ']],
  [-5, ['sessions_full', full]],
  [-6, ['session', 'the session with the device was lost']],
  [-7, ['credentials', wrong]],
  [-8, ['passing', 'the request timed out in the device']],
  [-9, ['unsupported', 'the device does not support this']],
  [-10, ['unsupported', 'the device does not understand the request']],
  [-12, ['passing', 'the device could not read its own settings']],
  [-13, ['passing', 'the device could not store its settings']],
  [-16, ['too_large', 'the device could not forward the request; the batch was too large']],
  [-17, ['passing', 'the device got no answer from its own camera part']],
  [-21, ['session', 'the session with the device has expired']],
  [
    -26,
    [
      'forbidden',
      'the user is not allowed to do this; use an administrator of the device in username and password_file',
    ],
  ],
  [-27, ['credentials', wrong]],
  [-49, ['bad_request', 'the device has no such channel']],
  [-99, ['channel_offline', 'the camera of this channel does not answer its recorder']],
  [-105, ['sessions_full', 'the device blocks logins for a while after too many of them; retried later']],
  [-507, ['credentials', locked]],
] as const);

/** Some firmware uses other numbers for the same errors. */
const telling: readonly (readonly [RegExp, FaultKind, string])[] = [
  [/privacy/iu, 'privacy', 'privacy mode is on, which blocks all clients; switch it off at the camera'],
  [/locked|reach max/iu, 'credentials', locked],
  [/password (?:wrong|error)|wrong password|login failed|invalid user/iu, 'credentials', wrong],
  [/max session/iu, 'sessions_full', full],
  [/please login first/iu, 'session', 'the session with the device was lost'],
];

export function faultOf(code: number, detail: string): Fault {
  const words = detail.slice(0, 200);
  const told = telling.find(([pattern]) => pattern.test(words));
  const isLocked = code <= -500 && code >= -506;
  const entry = told
    ? ([told[1], told[2]] as const)
    : isLocked
      ? (['credentials', locked] as const)
      : known.get(code);
  if (entry) return { code, detail: words, kind: entry[0], sentence: withWords(entry[1], code, words) };
  const sentence = `the device answers with error ${code}${words === '' ? '' : ` (${words})`}`;
  return { code, detail: words, kind: 'unknown', sentence };
}

/** Adds what the device answered, before the remedy. */
function withWords(sentence: string, code: number, words: string): string {
  const answer = ` (error ${[code, words].filter((part) => part !== '').join(': ')})`;
  const at = sentence.indexOf('; ');
  return at < 0 ? `${sentence}${answer}` : `${sentence.slice(0, at)}${answer}${sentence.slice(at)}`;
}
