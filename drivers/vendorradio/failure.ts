/** Failures that say when a radio is worth another attempt. */
import { DeviceUnreachable } from '../../src/errors.ts';

/** The radio is asked again after `retry_ms`, not after the usual pause. */
export class TryLater extends DeviceUnreachable {
  readonly retry_ms: number;

  constructor(sentence: string, retry_ms: number) {
    super(sentence);
    this.retry_ms = retry_ms;
  }
}
