/** Decoders of commands, requests and their answers: the names, offsets and raw units of the MAVLink XML. */
import { f32, i32, u16, u32, u8 } from './fields.ts';

export const commandDecoders = {
  SET_MODE: (v: DataView) => ({
    custom_mode: u32(v, 0),
    target_system: u8(v, 4),
    base_mode: u8(v, 5),
  }),
  REQUEST_DATA_STREAM: (v: DataView) => ({
    req_message_rate: u16(v, 0),
    target_system: u8(v, 2),
    target_component: u8(v, 3),
    req_stream_id: u8(v, 4),
    start_stop: u8(v, 5),
  }),
  COMMAND_INT: (v: DataView) => ({
    param1: f32(v, 0),
    param2: f32(v, 4),
    param3: f32(v, 8),
    param4: f32(v, 12),
    x: i32(v, 16),
    y: i32(v, 20),
    z: f32(v, 24),
    command: u16(v, 28),
    target_system: u8(v, 30),
    target_component: u8(v, 31),
    frame: u8(v, 32),
    current: u8(v, 33),
    autocontinue: u8(v, 34),
  }),
  COMMAND_LONG: (v: DataView) => ({
    param1: f32(v, 0),
    param2: f32(v, 4),
    param3: f32(v, 8),
    param4: f32(v, 12),
    param5: f32(v, 16),
    param6: f32(v, 20),
    param7: f32(v, 24),
    command: u16(v, 28),
    target_system: u8(v, 30),
    target_component: u8(v, 31),
    confirmation: u8(v, 32),
  }),
  COMMAND_ACK: (v: DataView) => ({
    command: u16(v, 0),
    result: u8(v, 2),
    progress: u8(v, 3),
    result_param2: i32(v, 4),
    target_system: u8(v, 8),
    target_component: u8(v, 9),
  }),
  MESSAGE_INTERVAL: (v: DataView) => ({
    interval_us: i32(v, 0),
    message_id: u16(v, 4),
  }),
} as const;
