/** What the mission protocol transfers: missions, fences and rally points. */
import type { Autopilot } from '../reports/kind.ts';
import type { Decoded } from '../wire/messages.ts';

export const mission_kinds = ['mission', 'fence', 'rally'] as const;
export type MissionKind = (typeof mission_kinds)[number];

/** MAV_MISSION_TYPE. */
export const mission_types: Readonly<Record<MissionKind, number>> = { mission: 0, fence: 1, rally: 2 };

/** MAV_PROTOCOL_CAPABILITY bits of vehicles that transfer them. */
const capabilities: Readonly<Record<MissionKind, number>> = { mission: 0x4, fence: 0x4000, rally: 0x8000 };

/** Whether a vehicle with these capabilities transfers it. */
export function isSupported(kind: MissionKind, reported: number): boolean {
  // Beyond 32 bits the sum of powers of two stays exact, and these bits are among the lower ones.
  return ((reported % 2 ** 32) & capabilities[kind]) !== 0;
}

/** Returns undefined for a type that is none of them, which may stand for all. */
export function kindOfType(mission_type: number): MissionKind | undefined {
  return mission_kinds.find((kind) => mission_types[kind] === mission_type);
}

/** Messages of one transfer, which are addressed to the station that transfers. */
type TransferMessage = Extract<
  Decoded,
  {
    readonly name:
      | 'MISSION_ACK'
      | 'MISSION_COUNT'
      | 'MISSION_ITEM_INT'
      | 'MISSION_REQUEST'
      | 'MISSION_REQUEST_INT';
  }
>;
const transfer_messages: ReadonlySet<string> = new Set<TransferMessage['name']>([
  'MISSION_ACK',
  'MISSION_COUNT',
  'MISSION_ITEM_INT',
  'MISSION_REQUEST',
  'MISSION_REQUEST_INT',
]);

export function isTransfer(message: Decoded): message is TransferMessage {
  return transfer_messages.has(message.name);
}

/** Number of items at the start that are the vehicle's own: the home of an ArduPilot. */
export function ownItems(kind: MissionKind, autopilot: Autopilot): number {
  return kind === 'mission' && autopilot === 'ardupilot' ? 1 : 0;
}

/** Returns the number of the mission item with this `seq`, from 1 as in plan files; 0 for the home of an ArduPilot. */
export function itemNumber(seq: number, autopilot: Autopilot): number {
  return seq + 1 - ownItems('mission', autopilot);
}
