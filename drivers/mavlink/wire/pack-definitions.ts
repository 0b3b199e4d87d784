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
import { commandDecoders } from './command-messages.ts';
import { identityDecoders } from './identity-messages.ts';
import { missionDecoders } from './mission-messages.ts';
import { parameterDecoders } from './parameter-messages.ts';
import { telemetryDecoders } from './telemetry-messages.ts';

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

/** The texts of the table; it says how they are read. */
export function packDefinitions(): {
  readonly checks: string;
  readonly targets: string;
  readonly layouts: string;
} {
  const by_id = new Map(
    dialects
      .flatMap((dialect): LibraryMessage[] => Object.values(dialect.REGISTRY))
      .map((message) => [message.MSG_ID, message]),
  );
  const all = [...by_id.values()].toSorted((a, b) => a.MSG_ID - b.MSG_ID);
  const read = new Set(
    Object.keys({
      ...telemetryDecoders,
      ...identityDecoders,
      ...commandDecoders,
      ...missionDecoders,
      ...parameterDecoders,
    }),
  );
  return {
    checks: inLines(all.map(checkOf)),
    targets: inLines(all.flatMap(targetOf)),
    layouts: all
      .filter(({ MSG_NAME }) => read.has(MSG_NAME))
      .map(layoutOf)
      .join('\n'),
  };
}

function checkOf({ MSG_ID, MAGIC_NUMBER, PAYLOAD_LENGTH, FIELDS }: LibraryMessage): string {
  const base_length = Math.max(...FIELDS.filter(({ extension }) => !extension).map(endOf));
  return [MSG_ID, MAGIC_NUMBER, base_length, PAYLOAD_LENGTH].join(' ');
}

function targetOf({ MSG_ID, FIELDS }: LibraryMessage): readonly string[] {
  return FIELDS.filter(({ source }) => source === 'target_system').map(({ offset }) => `${MSG_ID} ${offset}`);
}

function layoutOf({ MSG_ID, MSG_NAME, FIELDS }: LibraryMessage): string {
  const fields = FIELDS.toSorted((a, b) => a.offset - b.offset);
  let at = 0;
  for (const field of fields) {
    if (field.offset !== at)
      throw new Error(`${MSG_NAME}.${field.source} does not follow the field before it`);
    at = endOf(field);
  }
  return `${MSG_ID} ${MSG_NAME}: ${fields.map(fieldText).join(', ')}`;
}

function fieldText({ source, type, length }: LibraryField): string {
  const plain = type.replace('[]', '').replace('_mavlink_version', '');
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

/** Id, name and fields, in the order of the wire, of each message that the driver reads or writes. */
export const layouts = \`
${layouts}
\`;
`;
}

if (import.meta.main) {
  writeFileSync(new URL('definitions-table.ts', import.meta.url), tableFile(packDefinitions()));
}
