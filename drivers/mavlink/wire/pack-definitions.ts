/**
 * Packs what the driver needs of node-mavlink's definitions into definitions-table.ts: `node drivers/mavlink/wire/pack-definitions.ts`.
 * A tool, not part of the daemon: loading the library costs 7 MB and 50 ms, and four numbers of each message are enough.
 */
import { writeFileSync } from 'node:fs';
import {
  ardupilotmega,
  asluav,
  common,
  development,
  icarous,
  minimal,
  standard,
  storm32,
  ualberta,
  uavionix,
} from 'node-mavlink';

type LibraryMessage = (typeof common.REGISTRY)[number];
type LibraryField = LibraryMessage['FIELDS'][number];

/** Later ones win where two dialects have the same id. */
const dialects = [
  development,
  storm32,
  asluav,
  icarous,
  ualberta,
  uavionix,
  minimal,
  standard,
  common,
  ardupilotmega,
];

const checks_per_line = 6;
/** As the formatter has it. */
const line_chars_max = 110;

/** The messages that the driver reads or writes; the extra ones of definitions.ts come on top. */
const used: ReadonlySet<string> = new Set([
  'HEARTBEAT',
  'SYS_STATUS',
  'SYSTEM_TIME',
  'SET_MODE',
  'PARAM_REQUEST_READ',
  'PARAM_REQUEST_LIST',
  'GPS_RAW_INT',
  'GPS2_RAW',
  'ATTITUDE',
  'GLOBAL_POSITION_INT',
  'MISSION_REQUEST',
  'MISSION_SET_CURRENT',
  'MISSION_CURRENT',
  'MISSION_REQUEST_LIST',
  'MISSION_COUNT',
  'MISSION_CLEAR_ALL',
  'MISSION_ITEM_REACHED',
  'MISSION_ACK',
  'MISSION_REQUEST_INT',
  'NAV_CONTROLLER_OUTPUT',
  'RC_CHANNELS',
  'RC_CHANNELS_RAW',
  'TERRAIN_REPORT',
  'ALTITUDE',
  'FILE_TRANSFER_PROTOCOL',
  'COMPONENT_INFORMATION',
  'REQUEST_DATA_STREAM',
  'FLIGHT_INFORMATION',
  'LOG_DATA',
  'LOG_ENTRY',
  'LOG_REQUEST_DATA',
  'LOG_REQUEST_END',
  'LOG_REQUEST_LIST',
  'MISSION_ITEM_INT',
  'VFR_HUD',
  'COMMAND_INT',
  'COMMAND_LONG',
  'COMMAND_ACK',
  'TIMESYNC',
  'SET_POSITION_TARGET_GLOBAL_INT',
  'POSITION_TARGET_GLOBAL_INT',
  'RADIO_STATUS',
  'BATTERY_STATUS',
  'AUTOPILOT_VERSION',
  'FENCE_STATUS',
  'RADIO',
  'WIND',
  'EKF_STATUS_REPORT',
  'ESTIMATOR_STATUS',
  'WIND_COV',
  'HIGH_LATENCY2',
  'VIBRATION',
  'HOME_POSITION',
  'EXTENDED_SYS_STATE',
  'STATUSTEXT',
  'CAMERA_INFORMATION',
  'VIDEO_STREAM_INFORMATION',
  'GIMBAL_DEVICE_INFORMATION',
  'ORBIT_EXECUTION_STATUS',
  'COMPONENT_INFORMATION_BASIC',
  'AVAILABLE_MODES',
]);

/** Fields that are read otherwise than the XML says. */
const read_as: Readonly<Record<string, string>> = {
  // Identities that no rounding may touch.
  'AUTOPILOT_VERSION.uid': 'hex64',
  'GIMBAL_DEVICE_INFORMATION.uid': 'hex64',
  // Times since some start, which are never negative.
  'TIMESYNC.tc1': 'uint64_t',
  'TIMESYNC.ts1': 'uint64_t',
  // Arrays of bytes in the XML, and texts in truth.
  'CAMERA_INFORMATION.vendor_name': 'char',
  'CAMERA_INFORMATION.model_name': 'char',
  // The spaces at the ends of a chunk stand between two words of the whole text.
  'STATUSTEXT.text': 'chunk',
};

/** The texts of the table; it says how they are read. */
export function packDefinitions(): {
  readonly checks: string;
  readonly targets: string;
  readonly layouts: Readonly<Record<string, string>>;
} {
  const by_id = new Map(
    dialects
      .flatMap((dialect): LibraryMessage[] => Object.values(dialect.REGISTRY))
      .map((message) => [message.MSG_ID, message]),
  );
  const all = [...by_id.values()].toSorted((a, b) => a.MSG_ID - b.MSG_ID);
  return {
    checks: inLines(all.map(checkOf)),
    targets: inLines(all.flatMap(targetOf)),
    layouts: Object.fromEntries(all.filter(({ MSG_NAME }) => used.has(MSG_NAME)).map(layoutOf)),
  };
}

function checkOf({ MSG_ID, MAGIC_NUMBER, PAYLOAD_LENGTH, FIELDS }: LibraryMessage): string {
  const base_length = Math.max(...FIELDS.filter(({ extension }) => !extension).map(endOf));
  return [MSG_ID, MAGIC_NUMBER, base_length, PAYLOAD_LENGTH].join(' ');
}

function targetOf({ MSG_ID, FIELDS }: LibraryMessage): readonly string[] {
  return FIELDS.filter(({ source }) => source === 'target_system').map(({ offset }) => `${MSG_ID} ${offset}`);
}

function layoutOf({ MSG_ID, MSG_NAME, FIELDS }: LibraryMessage): readonly [name: string, layout: string] {
  const fields = FIELDS.toSorted((a, b) => a.offset - b.offset);
  let at = 0;
  for (const field of fields) {
    if (field.offset !== at)
      throw new Error(`${MSG_NAME}.${field.source} does not follow the field before it`);
    at = endOf(field);
  }
  return [MSG_NAME, `${MSG_ID}: ${fields.map((field) => fieldText(MSG_NAME, field)).join(', ')}`];
}

function fieldText(message: string, { source, type, length }: LibraryField): string {
  const plain = read_as[`${message}.${source}`] ?? type.replace('[]', '').replace('_mavlink_version', '');
  return `${plain} ${source}${length > 0 ? `[${length}]` : ''}`;
}

function endOf({ offset, size, length }: LibraryField): number {
  return offset + size * (length || 1);
}

function inLines(texts: readonly string[]): string {
  const count = Math.ceil(texts.length / checks_per_line);
  const lines = Array.from({ length: count }, (_, line) =>
    texts.slice(line * checks_per_line, (line + 1) * checks_per_line).join(', '),
  );
  return lines.join(',\n');
}

function tableFile({ checks, targets, layouts }: ReturnType<typeof packDefinitions>): string {
  return `/** What node-mavlink knows of the messages of all dialects. Made by pack-definitions.ts; changes are lost. */

/** Of each message: id, CRC_EXTRA, and its length without and with the extensions. */
export const checks = \`
${checks}
\`;

/** Of each message with a target_system: id and the offset of that field. */
export const targets = \`
${targets}
\`;

/** Of each message that the driver reads or writes: id and fields, in the order of the wire. */
export const layouts = {
${Object.entries(layouts).map(lineOf).join('\n')}
} as const;
`;
}

function lineOf([name, layout]: readonly [string, string]): string {
  const line = `  ${name}: '${layout}',`;
  return line.length > line_chars_max ? line.replace(': ', ':\n    ') : line;
}

if (import.meta.main) {
  writeFileSync(new URL('definitions-table.ts', import.meta.url), tableFile(packDefinitions()));
}
