/** How large the buffer file is, beside what it holds. */
import { statSync } from 'node:fs';
import { lanes } from '../../../src/contract/lanes.ts';
import type { Done } from '../../../src/kit/outbox/protocol.ts';

/** Pages that the rows of one page of text may take. */
const pages_for_bytes = 2.5;
/** Empty tables, and those without messages. */
const fixed_bytes = 2 * 1024 * 1024;
/** The log is cut to this when it was written back. */
const log_bytes = 16 * 1024 * 1024;

export class BufferSize {
  #peak_bytes = 0;
  #has_quarantine = false;

  /** After a commit: what is wrong with the size of the file, which must come from what the buffer has held. */
  wrongAfter({ depth, quarantined_rows }: Done, file: string): string | undefined {
    const held = lanes.reduce((sum, lane) => sum + depth[lane].bytes, 0);
    this.#peak_bytes = Math.max(this.#peak_bytes, held);
    this.#has_quarantine ||= quarantined_rows > 0;
    // Refused messages stand beside the lanes, and a commit does not say how large they are.
    if (this.#has_quarantine) return undefined;
    const allowed = this.#peak_bytes * pages_for_bytes + fixed_bytes;
    return (
      tooLarge('buffer file', sizeOf(file), allowed) ??
      tooLarge('log of the buffer file', sizeOf(`${file}-wal`), allowed + log_bytes)
    );
  }
}

function tooLarge(name: string, bytes: number, allowed: number): string | undefined {
  return bytes > allowed
    ? `the ${name} has ${bytes} bytes, at most ${Math.ceil(allowed)} are explained`
    : undefined;
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
