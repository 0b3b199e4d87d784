/** Decoders of the parameter protocol: the names, offsets and raw units of the MAVLink XML. */
import { i16, text, u16, u32, u8 } from './fields.ts';

export const parameterDecoders = {
  PARAM_REQUEST_READ: (v: DataView) => ({
    param_index: i16(v, 0),
    target_system: u8(v, 2),
    target_component: u8(v, 3),
    param_id: text(v, 4, 16),
  }),
  PARAM_REQUEST_LIST: (v: DataView) => ({
    target_system: u8(v, 0),
    target_component: u8(v, 1),
  }),
  /** `param_value`: the 32 bits of the field, since some autopilots store an integer in them, which a float would not survive. */
  PARAM_VALUE: (v: DataView) => ({
    param_value: u32(v, 0),
    param_count: u16(v, 4),
    param_index: u16(v, 6),
    param_id: text(v, 8, 16),
    param_type: u8(v, 24),
  }),
} as const;
