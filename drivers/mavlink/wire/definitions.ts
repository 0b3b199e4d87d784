/** Definitions of messages: id, checksum seed, lengths and fields, from node-mavlink and our additions. */
import { checks, layouts as libraryLayouts } from './definitions-table.ts';
import { type Field, sizeOf } from './fields.ts';

// Messages that autopilots send and node-mavlink does not define, because their XML calls them work in progress; and PARAM_VALUE
// and PARAM_SET, whose float may hold the bits of an integer.

/** As in definitions-table.ts. */
const extraLayouts = {
  EVENT:
    '410: uint32_t id, uint32_t event_time_boot_ms, uint16_t sequence, uint8_t destination_component, uint8_t destination_system, uint8_t log_levels, uint8_t arguments[40]',
  CURRENT_EVENT_SEQUENCE: '411: uint16_t sequence, uint8_t flags',
  REQUEST_EVENT:
    '412: uint16_t first_sequence, uint16_t last_sequence, uint8_t target_system, uint8_t target_component',
  RESPONSE_EVENT_ERROR:
    '413: uint16_t sequence, uint16_t sequence_oldest_available, uint8_t target_system, uint8_t target_component, uint8_t reason',
  COMPONENT_METADATA: '397: uint32_t time_boot_ms, uint32_t file_crc, char uri[100]',
  // The 32 bits of the value, since some autopilots store an integer in them, which a float would not survive.
  PARAM_SET:
    '23: uint32_t param_value, uint8_t target_system, uint8_t target_component, char param_id[16], uint8_t param_type',
  PARAM_VALUE:
    '22: uint32_t param_value, uint16_t param_count, uint16_t param_index, char param_id[16], uint8_t param_type',
} as const;

/**
 * Id, CRC_EXTRA and length without extensions of messages. Where the library's definition is older than the XML, this one
 * counts. Those without a layout are recognised and not read.
 */
const extraChecks: readonly (readonly [id: number, crc_extra: number, base_length: number])[] = [
  [8, 117, 36], // LINK_NODE_STATUS
  [80, 14, 4], // COMMAND_CANCEL
  [290, 251, 46], // ESC_INFO
  [291, 10, 57], // ESC_STATUS
  [292, 227, 223], // ESC_EEPROM
  [300, 217, 22], // PROTOCOL_VERSION
  [345, 209, 21], // PARAM_ERROR
  [354, 210, 14], // SET_VELOCITY_LIMITS
  [355, 6, 12], // VELOCITY_LIMITS
  [361, 93, 33], // FIGURE_EIGHT_EXECUTION_STATUS
  [372, 26, 140], // BATTERY_INFO
  [376, 199, 8], // RELAY_STATUS
  [380, 232, 20], // TIME_ESTIMATE_TO_TARGET
  [390, 156, 238], // ONBOARD_COMPUTER_STATUS
  [397, 182, 108], // COMPONENT_METADATA
  [410, 160, 53], // EVENT
  [411, 106, 3], // CURRENT_EVENT_SEQUENCE
  [412, 33, 6], // REQUEST_EVENT
  [413, 77, 7], // RESPONSE_EVENT_ERROR
  [421, 149, 6], // RC_CHANNELS_OVERRIDE_V2
  [513, 99, 45], // RANGING_BEACON
  [514, 197, 54], // ESTIMATOR_SENSOR_FUSION_STATUS
  [10151, 195, 85], // LOWEHEISER_GOV_EFI
  [11060, 162, 78], // NAMED_VALUE_STRING
  [50001, 246, 32], // CUBEPILOT_RAW_RC
  [50002, 181, 246], // HERELINK_VIDEO_STREAM_INFORMATION
  [50003, 62, 19], // HERELINK_TELEM
  [50004, 240, 10], // CUBEPILOT_FIRMWARE_UPDATE_START
  [50005, 152, 6], // CUBEPILOT_FIRMWARE_UPDATE_RESP
  [52000, 13, 100], // AIRLINK_AUTH
  [52001, 239, 1], // AIRLINK_AUTH_RESPONSE
  [52501, 240, 17], // CONTROL_LOADING_AXIS
  [52502, 88, 78], // MOTION_PLATFORM_STATE
  [52503, 96, 85], // REXROTH_MOTION_PLATFORM
  [52504, 177, 28], // MOTION_CUE_EXTRA
  [52505, 215, 50], // EYE_TRACKING_DATA
  [52600, 181, 38], // LED_STRIP_CONFIG
  [52601, 102, 36], // LED_STRIP_STATE
  [60000, 4, 22], // AUTOPILOT_STATE_FOR_GIMBAL_DEVICE_EXT
  [60020, 202, 4], // QSHOT_STATUS
  [60041, 191, 255], // PARAM_VALUE_ARRAY
  [60047, 55, 7], // MLRS_RADIO_LINK_FLOW_CONTROL
  [60050, 220, 14], // AVSS_PRS_SYS_STATUS
  [60051, 245, 24], // AVSS_DRONE_POSITION
  [60052, 101, 44], // AVSS_DRONE_IMU
  [60053, 45, 6], // AVSS_DRONE_OPERATION_MODE
  [296, 158, 41], // GLOBAL_POSITION_SENSOR
  [369, 145, 27], // BATTERY_STATUS_V2
  [512, 21, 12], // CONTROL_STATUS
];

const layouts = { ...libraryLayouts, ...extraLayouts } as const;
type Layouts = typeof layouts;

export type MessageName = keyof Layouts;

type FieldOf<Text> = Text extends `${'char' | 'chunk'} ${infer Name}[${number}]` | `hex64 ${infer Name}`
  ? Record<Name, string>
  : Text extends `${string} ${infer Name}[${number}]`
    ? Record<Name, readonly number[]>
    : Text extends `${string} ${infer Name}`
      ? Record<Name, number>
      : never;
type FieldsOf<Text> = Text extends `${infer First}, ${infer Rest}`
  ? FieldOf<First> & FieldsOf<Rest>
  : FieldOf<Text>;

/**
 * Fields by message, named as in the XML, in the raw units of the wire; sentinels and NaN are as they came. 64-bit
 * integers are numbers, exact up to 2^53; a `uid` is 16 hexadecimal digits. Texts end at their NUL.
 */
export type Messages = {
  readonly [K in MessageName]: Layouts[K] extends `${number}: ${infer Text}`
    ? { readonly [F in keyof FieldsOf<Text>]: FieldsOf<Text>[F] }
    : never;
};

export interface Definition {
  readonly id: number;
  readonly name: MessageName;
  readonly crc_extra: number;
  /** With the extension fields. */
  readonly full_length: number;
  readonly fields: readonly Field[];
}

/** Ids of MAVLink 2 have 24 bits; no dialect has one beyond 16. */
const known_ids_max = 0x1_00_00;
/** Ids of MAVLink 1 have 8 bits. */
const ids_v1_max = 0x1_00;

/** By id: CRC_EXTRA and one more. Most stay 0, for messages that are not known, and what is never written takes no memory. */
const seeds = new Uint16Array(known_ids_max);

/** By id: the lengths that a MAVLink 1 frame may have. Some senders append the extensions, which MAVLink 1 does not know. */
export const baseLengths = new Uint8Array(ids_v1_max);
export const fullLengths = new Uint8Array(ids_v1_max);

/**
 * By id: the seed of a second definition, where a message that was work in progress has changed since. Its frames are recognised by
 * their checksum and are not read.
 */
export const otherCrcExtras = new Map<number, number>();

for (const check of checks.split(',')) {
  const [id = 0, crc_extra = 0, base_length = 0, full_length = 0] = check.trim().split(' ').map(Number);
  know(id, crc_extra, { base_length, full_length });
}
for (const [id, crc_extra, base_length] of extraChecks) {
  const other = crcExtraOf(id);
  if (other !== -1 && other !== crc_extra) otherCrcExtras.set(id, other);
  know(id, crc_extra, { base_length, full_length: base_length });
}

const byName = new Map(
  Object.keys(layouts)
    .filter(isMessageName)
    .map((name) => [name, definitionFrom(name)]),
);

function isMessageName(name: string): name is MessageName {
  return Object.hasOwn(layouts, name);
}

/** The messages that the driver reads or writes. */
export const definitions: readonly Definition[] = [...byName.values()];

/** The seed of the checksum, and -1 where the message is not known. */
export function crcExtraOf(msgid: number): number {
  return msgid < known_ids_max ? (seeds[msgid] ?? 0) - 1 : -1;
}

export function definitionOf(name: MessageName): Definition {
  const definition = byName.get(name);
  if (definition === undefined) throw new RangeError(`the dialects do not define ${name}`);
  return definition;
}

function know(
  id: number,
  crc_extra: number,
  { base_length, full_length }: { readonly base_length: number; readonly full_length: number },
): void {
  seeds[id] = crc_extra + 1;
  // Ids that MAVLink 1 cannot encode are outside these arrays and are not stored.
  baseLengths[id] = base_length;
  fullLengths[id] = full_length;
}

/** From `id: type field, type field[length], ...`, in the order of the wire and without gaps. */
function definitionFrom(name: MessageName): Definition {
  const [, id = '', list = ''] = /^(\d+): (.*)$/u.exec(layouts[name]) ?? [];
  let at = 0;
  const fields = list.split(', ').map((text): Field => {
    const [, type = '', field = '', length = '0'] = /^(\w+) (\w+)(?:\[(\d+)\])?$/u.exec(text) ?? [];
    const begin = at;
    at += sizeOf(type) * (Number(length) || 1);
    return { name: field, type, at: begin, length: Number(length) };
  });
  return { id: Number(id), name, crc_extra: crcExtraOf(Number(id)), full_length: at, fields };
}
