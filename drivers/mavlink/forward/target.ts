/** Reads the system that a frame is addressed to, of any message of the dialects. */
import { targets } from '../wire/definitions-table.ts';
import type { Frame } from '../wire/frame.ts';

/** Offset of `target_system` in the payload, by message id. */
const offsets: ReadonlyMap<number, number> = new Map(
  targets.split(',').map((pair) => {
    const [id = 0, offset = 0] = pair.trim().split(' ').map(Number);
    return [id, offset];
  }),
);

/** Returns 0 for all systems, and undefined for a message without an address. */
export function targetOf({ msgid, source, payload_at, payload_length }: Frame): number | undefined {
  const offset = offsets.get(msgid);
  if (offset === undefined) return undefined;
  // MAVLink 2 leaves out zeros at the end.
  return offset < payload_length ? (source[payload_at + offset] ?? 0) : 0;
}

const command_int = 75;
const command_long = 76;
const command_at = 28;

/** Returns the number of the command that the frame carries, if it carries one. */
export function commandOf({ msgid, source, payload_at, payload_length }: Frame): number | undefined {
  if (msgid !== command_int && msgid !== command_long) return undefined;
  const byteAt = (offset: number): number =>
    offset < payload_length ? (source[payload_at + offset] ?? 0) : 0;
  return byteAt(command_at) | (byteAt(command_at + 1) << 8);
}
