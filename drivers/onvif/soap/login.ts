/** Logs in to a camera: each way at most once, and at most two refused logins for each try, since cameras lock accounts. */
import { LoginRefused } from '../../../src/toolkit/device/login-guard.ts';
import { texts as device_texts } from '../../../src/toolkit/device/texts.ts';
import { DeviceUnreachable } from '../../../src/platform/errors.ts';
import type { CameraOptions } from '../options.ts';
import { texts } from '../texts.ts';
import { clock_step_ms } from './line.ts';
import {
  describe,
  expectReply,
  type Failure,
  type Fault,
  isRefusedLogin,
  type Login,
  type LoginSigns,
  operation,
  type Reply,
  type Soap,
  type SoapOutcome,
} from './soap.ts';

export interface LoginOptions extends Pick<CameraOptions, 'username'> {
  /** As configured, or the way that worked before. */
  readonly auth: CameraOptions['auth'] | Exclude<Login, 'none'>;
}

/** A clock that told the truth may begin to report its summer time as UTC, and end it: both clocks belong to one way. */
const ways_by_auth = {
  auto: ['ws_security', 'digest', 'gateway_clock'],
  ws_security: ['ws_security', 'gateway_clock'],
  gateway_clock: ['gateway_clock', 'ws_security'],
  digest: ['digest'],
} as const satisfies Record<LoginOptions['auth'], readonly Login[]>;

/**
 * The reply to GetDeviceInformation, which decides: earlier calls are answered without a password. Throws DeviceUnreachable when the
 * camera does not answer, and LoginRefused, with what may be the cause, when it refuses the login.
 */
export async function passLogin(soap: Soap, { username, auth }: LoginOptions): Promise<Reply> {
  const refusals: Fault[] = [];
  for (const way of username === undefined ? (['none'] as const) : ways_by_auth[auth]) {
    if (!isWorthTrying(way, refusals)) continue;
    soap.login = way;
    const outcome = await soap.call(operation('device', 'GetDeviceInformation'));
    if (isRefusedLogin(outcome)) refusals.push(outcome);
    else return expectAnswer(outcome);
  }
  throw new LoginRefused(refusalOf(refusals, username));
}

/** What the device counts: "You still have 5 attempt(s)" of an Imou (home-assistant/core#147404, agsh/onvif#112), `retryLoginTime` of a Hikvision. */
const last_attempts = /\b[0-2] (?:more )?attempt|retrylogintime [0-2]\b/iu;
const locked = /\block(?:ed)?\b/iu;

/** Not where the account is or will be locked, nor where the password itself was refused, nor with a clock that agrees with the one of before. */
function isWorthTrying(way: Login, refusals: readonly Fault[]): boolean {
  const last = refusals.at(-1);
  if (last === undefined) return true;
  if (locked.test(last.reason) || last_attempts.test(last.reason)) return false;
  if (refusals.some(({ signs }) => signs?.isHttpRefused)) return false;
  return way === 'digest' || way === 'ws_security' || isOff(last.signs);
}

function isOff(signs: LoginSigns | undefined): boolean {
  return Math.abs(signs?.clock_ahead_ms ?? 0) >= clock_step_ms;
}

/** The cause that the answers show, in the words of the camera where it has any. */
function refusalOf(refusals: readonly Fault[], username: string | undefined): string {
  const reasons = refusals.map(({ reason }) => reason).filter((reason) => reason !== '');
  const words = reasons.find((reason) => !/^HTTP status \d+$/u.test(reason)) ?? reasons[0];
  const answer = words === undefined ? '' : ` (${words})`;
  if (username === undefined) return texts.login_required(answer);
  if (reasons.some((reason) => locked.test(reason))) return texts.account_locked(username, answer);
  if (refusals.some(({ signs }) => signs?.isBasicAlone)) return texts.basic_alone;
  const off = refusals.find(({ signs }) => isOff(signs))?.signs;
  const isClock = off !== undefined && !refusals.some(({ signs }) => signs?.isHttpRefused);
  return isClock
    ? texts.clock_off(username, answer, off.clock_ahead_ms)
    : texts.login_rejected(username, answer);
}

function expectAnswer(outcome: SoapOutcome): Reply {
  if (isClosed(outcome)) throw new DeviceUnreachable(`${outcome.reason}; ${texts.check_tls}`);
  if (isOtherServer(outcome)) throw new DeviceUnreachable(`${describe(outcome)}; ${texts.check_port}`);
  return expectReply(outcome, 'GetDeviceInformation');
}

/** As a port for TLS closes what is not encrypted. */
function isClosed(outcome: SoapOutcome): outcome is Failure {
  return outcome.kind === 'failure' && outcome.reason === device_texts.connection_closed;
}

/** What answers is no ONVIF service: a login page, another program, another path. */
function isOtherServer(outcome: SoapOutcome): outcome is Exclude<SoapOutcome, { kind: 'reply' }> {
  if (outcome.kind === 'failure') return outcome.why === 'malformed';
  return outcome.kind === 'fault' && outcome.code.startsWith('HTTP4');
}
