/** Converts faults of a device into errors of the connector. */
import { CommandRefused, DeviceRejected, DeviceUnreachable, RetryLater } from '../../../src/errors.ts';
import type { Limits } from '../limits.ts';
import type { Fault } from './rsp-codes.ts';

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
