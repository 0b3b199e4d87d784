/** Meaning of the cameras' error codes, as sentences for the technician. See the vendor's Camera HTTP API guide, "Error codes". */
import { texts } from '../texts.ts';
import {
  CommandRefused,
  DeviceRejected,
  DeviceUnreachable,
  RetryLater,
} from '../../../src/platform/errors.ts';
import type { Limits } from '../limits.ts';

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

const locked = texts.account_locked;
const wrong = texts.login_rejected;
const full = texts.sessions_full;

/** -500 to -506 are added below. */
const known: ReadonlyMap<number, readonly [FaultKind, string]> = new Map([
  [-1, ['bad_request', texts.code_parameter_missing]],
  [-4, ['bad_request', texts.code_parameter]],
  [-5, ['sessions_full', full]],
  [-6, ['session', texts.code_session_lost]],
  [-7, ['credentials', wrong]],
  [-8, ['passing', texts.code_timeout]],
  [-9, ['unsupported', texts.code_unsupported]],
  [-10, ['unsupported', texts.code_not_understood]],
  [-12, ['passing', texts.code_settings_unread]],
  [-13, ['passing', texts.code_settings_unsaved]],
  [-16, ['too_large', texts.code_batch_large]],
  [-17, ['passing', texts.code_camera_part]],
  [-21, ['session', texts.code_session_expired]],
  [-26, ['forbidden', texts.code_not_allowed]],
  [-27, ['credentials', wrong]],
  [-49, ['bad_request', texts.code_no_channel]],
  [-99, ['channel_offline', texts.code_channel_silent]],
  [-105, ['sessions_full', texts.code_logins_blocked]],
  [-507, ['credentials', locked]],
] as const);

/** Some firmware uses other numbers for the same errors. */
const telling: readonly (readonly [RegExp, FaultKind, string])[] = [
  [/privacy/iu, 'privacy', texts.privacy_mode],
  [/locked|reach max/iu, 'credentials', locked],
  [/password (?:wrong|error)|wrong password|login failed|invalid user/iu, 'credentials', wrong],
  [/max session/iu, 'sessions_full', full],
  [/please login first/iu, 'session', texts.code_session_lost],
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
  const sentence = texts.code_other(code, words === '' ? '' : ` (${words})`);
  return { code, detail: words, kind: 'unknown', sentence };
}

/** Adds what the device answered, before the remedy. */
function withWords(sentence: string, code: number, words: string): string {
  const answer = ` (error ${[code, words].filter((part) => part !== '').join(': ')})`;
  const at = sentence.indexOf('; ');
  return at < 0 ? `${sentence}${answer}` : `${sentence.slice(0, at)}${answer}${sentence.slice(at)}`;
}

/** The request was cancelled for a Stop; the device is not at fault. */
export class GivenUp extends DeviceUnreachable {}

/** For a login or a query that is required for the connection. */
export function failureOf(fault: Fault, limits: Pick<Limits, 'sessions_full_ms' | 'privacy_ms'>): Error {
  if (fault.kind === 'credentials') return new DeviceRejected(fault.sentence);
  if (fault.kind === 'sessions_full') return new RetryLater(fault.sentence, limits.sessions_full_ms);
  if (fault.kind === 'privacy') return new RetryLater(fault.sentence, limits.privacy_ms);
  return new DeviceUnreachable(fault.sentence);
}

/** For a command of an operator. */
export function refusalOf(fault: Fault): CommandRefused {
  return new CommandRefused(fault.sentence);
}
