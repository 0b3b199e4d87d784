/** Recognises frames that a router delivers twice (mavlink/qgroundcontrol#12754): an answer is to one command, a text is told once. */
import { SeenRecently } from '../../../src/platform/seen-recently.ts';
import { type Frame, fingerprintOf } from '../wire/frame.ts';
import type { Decoded, MessageName } from '../wire/messages.ts';

/** Longer than any way through a mesh. A sequence number returns sooner, but rarely with the same content. */
const keep_ms = 10_000;
const frames_max = 32;
const counted: ReadonlySet<MessageName> = new Set(['COMMAND_ACK', 'STATUSTEXT']);

export class FrameCopies {
  readonly #seen = new SeenRecently<number>({ keep_ms, max: frames_max });

  /** False: it was received before. Of other messages a second one does no harm. */
  isNew({ name }: Decoded, frame: Frame, now_ms: number): boolean {
    if (!counted.has(name)) return true;
    const content = fingerprintOf(frame);
    if (this.#seen.has(content, now_ms)) return false;
    this.#seen.note(content, true, now_ms);
    return true;
  }
}
