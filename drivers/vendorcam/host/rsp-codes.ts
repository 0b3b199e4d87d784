/** Meaning of the cameras' error codes, as sentences for the technician. See the vendor's Camera HTTP API guide, version 7, section 4.1. */
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
  /** Wrong name or password, or a login that is locked or denied: do not retry. */
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
  /** The sentence without the words of the device. */
  readonly text: string;
  /** For the technician or the operator. */
  readonly sentence: string;
}

const locked = texts.account_locked;
const denied = texts.login_denied;
const wrong = texts.login_rejected;
const full = texts.sessions_full;

const known: ReadonlyMap<number, readonly [FaultKind, string]> = new Map([
  [-1, ['bad_request', texts.code_parameter_missing]],
  [-2, ['passing', texts.code_memory]],
  [-4, ['bad_request', texts.code_parameter]],
  [-5, ['sessions_full', full]],
  [-6, ['session', texts.code_session_lost]],
  [-7, ['credentials', wrong]],
  [-8, ['passing', texts.code_timeout]],
  [-9, ['unsupported', texts.code_unsupported]],
  [-10, ['unsupported', texts.code_not_understood]],
  [-11, ['passing', texts.code_camera_part]],
  [-12, ['passing', texts.code_settings_unread]],
  [-13, ['passing', texts.code_settings_unsaved]],
  [-16, ['too_large', texts.code_batch_large]],
  [-17, ['passing', texts.code_camera_part]],
  [-21, ['session', texts.code_session_expired]],
  [-26, ['forbidden', texts.code_not_allowed]],
  [-27, ['credentials', wrong]],
  [-48, ['passing', texts.code_no_picture]],
  [-49, ['bad_request', texts.code_no_channel]],
  [-99, ['channel_offline', texts.code_channel_silent]],
  [-105, ['sessions_full', texts.code_logins_blocked]],
  [-500, ['sessions_full', texts.addresses_full]],
  [-501, ['credentials', texts.user_unknown]],
  [-502, ['credentials', wrong]],
  [-503, ['credentials', denied]],
  [-504, ['credentials', denied]],
  [-505, ['passing', texts.login_not_ready]],
  [-506, ['credentials', locked]],
  [-507, ['sessions_full', texts.logins_full]],
] as const);

/** Some firmware uses other numbers for the same errors. */
const telling: readonly (readonly [RegExp, FaultKind, string])[] = [
  [/privacy/iu, 'privacy', texts.privacy_mode],
  [/locked/iu, 'credentials', locked],
  [/reach max/iu, 'sessions_full', texts.logins_full],
  [/login deny/iu, 'credentials', denied],
  [/password (?:wrong|error)|wrong password|login failed|invalid user/iu, 'credentials', wrong],
  [/max session/iu, 'sessions_full', full],
  [/^busy$/iu, 'passing', texts.code_busy],
  [/please login first/iu, 'session', texts.code_session_lost],
];

export function faultOf(code: number, detail: string): Fault {
  const words = detail.slice(0, 200);
  const told = telling.find(([pattern]) => pattern.test(words));
  const entry = told ? ([told[1], told[2]] as const) : known.get(code);
  if (entry) {
    const [kind, text] = entry;
    return { code, detail: words, kind, text, sentence: withWords(text, code, words) };
  }
  const text = texts.code_other(code, words === '' ? '' : ` (${words})`);
  return { code, detail: words, kind: 'unknown', text, sentence: text };
}

/** The same refusal of a login that was accepted before: some firmware has one answer for a wrong password and for its own troubles. */
export function afterAcceptance(fault: Fault): Fault {
  const text = texts.login_rejected_now;
  if (fault.text !== texts.login_rejected) return fault;
  return { ...fault, text, sentence: withWords(text, fault.code, fault.detail) };
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
