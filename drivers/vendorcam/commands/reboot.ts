/** Restarts a device and waits until it was lost and answers again. */
import { CommandRefused, DeviceUnreachable } from '../../../src/errors.ts';
import { within } from '../../../src/platform/time.ts';
import type { Contact } from '../host/contact.ts';
import type { Device } from '../host/device.ts';
import { refusalOf } from '../host/failure.ts';
import type { Limits } from '../limits.ts';
import { faultIn } from '../host/replies.ts';
import { texts } from '../texts.ts';

export interface RebootParts {
  readonly device: Pick<Device, 'order'>;
  readonly contact: Contact;
  readonly limits: Limits;
  readonly signal: AbortSignal;
  readonly progress: (message: string) => void;
}

/** Resolves with the seconds until it was back. */
export async function reboot(parts: RebootParts): Promise<number> {
  const { device, contact, limits, signal, progress } = parts;
  const before = contact.state;
  const begin_ms = performance.now();
  contact.expectBack(limits.reboot_deadline_ms);
  try {
    const fault = faultIn(await device.order({ cmd: 'Reboot', action: 0, param: {} }, { signal }));
    if (fault) throw refusalOf(fault);
  } catch (error) {
    // A device that goes down at once cannot answer; the wait below decides.
    if (!(error instanceof DeviceUnreachable)) {
      contact.expectBack(0);
      throw error;
    }
  }
  progress(texts.restart_sent);
  const gone = contact.until(({ isUp }) => !isUp, signal);
  if ((await within(limits.reboot_leaves_ms, gone, signal)) === true) {
    progress(texts.restarting);
    if (!(await contact.until(({ isUp }) => isUp, signal))) {
      throw unseen(signal, texts.not_back);
    }
  } else if (signal.aborted || contact.state.starts === before.starts) {
    // Its session was not lost either, so it did not restart.
    contact.expectBack(0);
    throw unseen(signal, texts.not_restarted);
  }
  contact.expectBack(0);
  return Math.round((performance.now() - begin_ms) / 1_000);
}

function unseen(signal: AbortSignal, sentence: string): CommandRefused {
  return new CommandRefused(signal.aborted ? texts.stopped_before_answer : sentence);
}
