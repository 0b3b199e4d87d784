/** A digest of what a vehicle has stored: equal items have equal digests. Pure. */
import { createHash } from 'node:crypto';
import type { Autopilot } from '../reports/kind.ts';
import { plainFrame, type StoredItem } from './item.ts';
import { type MissionKind, ownItems } from '../vehicles/mission-kinds.ts';

/** Returns the SHA-256 of the items without the vehicle's own ones, as hexadecimal digits. */
export function digestOf(kind: MissionKind, autopilot: Autopilot, items: readonly StoredItem[]): string {
  const listed = items
    .slice(ownItems(kind, autopilot))
    .map(({ command, frame, param1, param2, param3, param4, x, y, z }) =>
      [command, plainFrame(frame), param1, param2, param3, param4, x, y, z].map(String).join(' '),
    );
  return createHash('sha256').update(listed.join('\n')).digest('hex');
}
