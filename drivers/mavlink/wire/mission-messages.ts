/** Decoders of the mission protocol: the names, offsets and raw units of the MAVLink XML. */
import { f32, i32, u16, u32, u8 } from './fields.ts';

export const missionDecoders = {
  /** Older form of MISSION_REQUEST_INT; the answer is MISSION_ITEM_INT all the same. */
  MISSION_REQUEST: (v: DataView) => ({
    seq: u16(v, 0),
    target_system: u8(v, 2),
    target_component: u8(v, 3),
    mission_type: u8(v, 4),
  }),
  MISSION_SET_CURRENT: (v: DataView) => ({
    seq: u16(v, 0),
    target_system: u8(v, 2),
    target_component: u8(v, 3),
  }),
  MISSION_CURRENT: (v: DataView) => ({
    seq: u16(v, 0),
    total: u16(v, 2),
    mission_state: u8(v, 4),
    mission_mode: u8(v, 5),
    mission_id: u32(v, 6),
    fence_id: u32(v, 10),
    rally_points_id: u32(v, 14),
  }),
  MISSION_ITEM_REACHED: (v: DataView) => ({
    seq: u16(v, 0),
  }),
  MISSION_CLEAR_ALL: (v: DataView) => ({
    target_system: u8(v, 0),
    target_component: u8(v, 1),
    mission_type: u8(v, 2),
  }),
  MISSION_REQUEST_LIST: (v: DataView) => ({
    target_system: u8(v, 0),
    target_component: u8(v, 1),
    mission_type: u8(v, 2),
  }),
  MISSION_COUNT: (v: DataView) => ({
    count: u16(v, 0),
    target_system: u8(v, 2),
    target_component: u8(v, 3),
    mission_type: u8(v, 4),
    opaque_id: u32(v, 5),
  }),
  MISSION_ACK: (v: DataView) => ({
    target_system: u8(v, 0),
    target_component: u8(v, 1),
    type: u8(v, 2),
    mission_type: u8(v, 3),
    opaque_id: u32(v, 4),
  }),
  MISSION_REQUEST_INT: (v: DataView) => ({
    seq: u16(v, 0),
    target_system: u8(v, 2),
    target_component: u8(v, 3),
    mission_type: u8(v, 4),
  }),
  MISSION_ITEM_INT: (v: DataView) => ({
    param1: f32(v, 0),
    param2: f32(v, 4),
    param3: f32(v, 8),
    param4: f32(v, 12),
    x: i32(v, 16),
    y: i32(v, 20),
    z: f32(v, 24),
    seq: u16(v, 28),
    command: u16(v, 30),
    target_system: u8(v, 32),
    target_component: u8(v, 33),
    frame: u8(v, 34),
    current: u8(v, 35),
    autocontinue: u8(v, 36),
    mission_type: u8(v, 37),
  }),
} as const;
