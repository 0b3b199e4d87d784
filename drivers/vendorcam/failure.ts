/** Turns what a device answers into the errors that the connector knows. */
import { CommandRefused, DeviceRejected, DeviceUnreachable } from '../../src/errors.ts';
import type { Limits } from './limits.ts';
import type { Fault } from './rsp-codes.ts';

/** The device must not be asked again before `retry_ms` are over. */
export class TryLater extends DeviceUnreachable {
  readonly retry_ms: number;

  constructor(sentence: string, retry_ms: number) {
    super(sentence);
    this.retry_ms = retry_ms;
  }
}

/** The request made room for a Stop; the device is well. */
export class GivenUp extends DeviceUnreachable {}

/** For a login or a question without which there is nothing to serve. */
export function failureOf(fault: Fault, limits: Pick<Limits, 'sessions_full_ms' | 'privacy_ms'>): Error {
  if (fault.kind === 'credentials') return new DeviceRejected(fault.sentence);
  if (fault.kind === 'sessions_full') return new TryLater(fault.sentence, limits.sessions_full_ms);
  if (fault.kind === 'privacy') return new TryLater(fault.sentence, limits.privacy_ms);
  return new DeviceUnreachable(fault.sentence);
}

/** For a command of an operator. */
export function refusalOf(fault: Fault): CommandRefused {
  return new CommandRefused(fault.sentence);
}
