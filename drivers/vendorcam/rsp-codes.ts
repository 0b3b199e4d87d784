/** What the error codes of the cameras mean, in sentences for the technician. See the vendor's Camera HTTP API guide, "Error codes". */

export type FaultKind =
  /** The session is gone: log in again, once. */
  | 'session'
  /** Name or password is wrong, or the account is locked: any further attempt does harm. */
  | 'credentials'
  /** No session is free, or there were too many logins: wait long. */
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
  /** The device's own words. */
  readonly detail: string;
  readonly kind: FaultKind;
  /** For the technician or the operator. */
  readonly sentence: string;
}

const locked =
  'the account is locked after too many failed logins; unlock it or restart the camera, correct the password file, then reload the configuration';
const wrong =
  'user name or password is refused; correct username and password_file, then reload the configuration';
const full =
  'all sessions of the device are taken; close other programs and apps that are logged in, or give each its own user';

/** -500 to -506 are added below. */
const known: ReadonlyMap<number, readonly [FaultKind, string]> = new Map([
  [-1, ['bad_request', 'the device misses a parameter of the request; its firmware may differ']],
  [-4, ['bad_request', 'the device refuses a parameter of the request; its firmware may differ']],
  [-5, ['sessions_full', full]],
  [-6, ['session', 'the session with the device was lost']],
  [-7, ['credentials', wrong]],
  [-8, ['passing', 'the device was too slow to carry out the request']],
  [-9, ['unsupported', 'the device does not support this']],
  [-10, ['unsupported', 'the device does not understand the request']],
  [-12, ['passing', 'the device could not read its own settings']],
  [-13, ['passing', 'the device could not store its settings']],
  [-16, ['too_large', 'the device could not pass the request on; too much was asked at once']],
  [-17, ['passing', 'the device got no answer from its own camera part']],
  [-21, ['session', 'the device does not know the session any more']],
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
  [
    -105,
    [
      'sessions_full',
      'the device refuses us for a while because there were too many logins; it is asked later',
    ],
  ],
  [-507, ['credentials', locked]],
] as const);

/** Some firmware says the same with another number. */
const telling: readonly (readonly [RegExp, FaultKind, string])[] = [
  [
    /privacy/iu,
    'privacy',
    'privacy mode is switched on, which refuses everybody; switch it off at the camera',
  ],
  [/locked|reach max/iu, 'credentials', locked],
  [/password (?:wrong|error)|wrong password|login failed|invalid user/iu, 'credentials', wrong],
  [/max session/iu, 'sessions_full', full],
  [/please login first/iu, 'session', 'the session with the device was lost'],
];

export function faultOf(code: number, detail: string): Fault {
  const words = detail.slice(0, 200);
  const told = telling.find(([pattern]) => pattern.test(words));
  if (told) return { code, detail: words, kind: told[1], sentence: told[2] };
  const entry = code <= -500 && code >= -506 ? (['credentials', locked] as const) : known.get(code);
  if (entry) return { code, detail: words, kind: entry[0], sentence: entry[1] };
  const sentence = `the device answers with error ${code}${words === '' ? '' : ` (${words})`}`;
  return { code, detail: words, kind: 'unknown', sentence };
}
