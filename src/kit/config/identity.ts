/** The identity of the kit: its id where the configuration names none, and the machine that its state was made on. */
import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { texts } from './texts.ts';
import { hasCode } from '../../platform/errors.ts';
import { readTextUpTo, small_bytes_max, table_bytes_max } from '../../platform/bounded-file.ts';

/** Stands for an id that does not exist yet: the first start makes one. */
export const no_kit_id = '';

const id_file = 'kit-id';
const machine_file = 'kit-id.machine';

/** Paths below `state_dir`: the id, and what is known of the machine that it belongs to. */
export function identityFiles(state_dir: string): { readonly id: string; readonly machine: string } {
  return { id: join(state_dir, id_file), machine: join(state_dir, machine_file) };
}

/** The id that an earlier start made in `state_dir`, lower case. Undefined when there is none; rejects when it cannot be read. */
export async function readKitId(state_dir: string): Promise<string | undefined> {
  const { id } = identityFiles(state_dir);
  const text = await readTextUpTo(id, small_bytes_max).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  const read = z.uuid().safeParse(text.trim());
  if (!read.success) throw new Error('it holds no UUID');
  return read.data.toLowerCase();
}

/** Files that identify the machine; tests pass their own. */
export interface MachineFiles {
  readonly machine_id: string;
  /** Serial number of the board, where the firmware passes one on. */
  readonly board: string;
  readonly mounts: string;
}

const machine_files: MachineFiles = {
  machine_id: '/etc/machine-id',
  board: '/proc/device-tree/serial-number',
  mounts: '/proc/self/mountinfo',
};

/** Digests, since a machine id is not to leave the machine in the clear: machine-id(5). */
export interface MachineFacts {
  /** The machine has an id: it was booted, and is no image that is being built. */
  readonly isBooted: boolean;
  /** Undefined: none that outlives this boot. */
  readonly 'machine-id': string | undefined;
  readonly board: string | undefined;
}

/** Of this machine. An id that is mounted over its file lasts for one boot only and does not identify the machine. */
export async function machineFacts(files: MachineFiles = machine_files): Promise<MachineFacts> {
  const read = async (file: string): Promise<string> => readTextUpTo(file, table_bytes_max).catch(() => '');
  const [id, board, mounts] = await Promise.all([
    read(files.machine_id),
    read(files.board),
    read(files.mounts),
  ]);
  const isTransient = mounts.includes(` ${files.machine_id} `);
  const isBooted = /^[0-9a-f]{32}\s*$/u.test(id);
  const serial = board.replaceAll('\0', '').trim();
  return {
    isBooted,
    'machine-id': isBooted && !isTransient ? digest(id.trim()) : undefined,
    board: serial === '' ? undefined : digest(serial),
  };
}

function digest(text: string): string {
  return createHmac('sha256', 'kit-connector').update(text).digest('hex').slice(0, 32);
}

const fact_names = ['machine-id', 'board'] as const;

/** One line for each fact that is known; empty when none is. */
export function machineText(facts: MachineFacts): string {
  return fact_names
    .flatMap((name) => (facts[name] === undefined ? [] : [`${name} ${facts[name]}\n`]))
    .join('');
}

/**
 * Whether the machine that `text` was written on is another one than `facts` says: a fact that both know and that differs.
 * A disk that was copied keeps the text and gets another machine id or another board.
 */
export function isOtherMachine(text: string, facts: MachineFacts): boolean {
  const lines = text.split('\n');
  return fact_names.some((name) => {
    const before = lines.find((line) => line.startsWith(`${name} `))?.slice(name.length + 1);
    return before !== undefined && facts[name] !== undefined && before !== facts[name];
  });
}

/** The sentence for a state that another machine made; undefined when it is this one's, or nothing is known. */
export async function copyWarning(
  state_dir: string,
  files: MachineFiles = machine_files,
): Promise<string | undefined> {
  const { machine } = identityFiles(state_dir);
  const text = await readTextUpTo(machine, small_bytes_max).catch(() => '');
  if (!isOtherMachine(text, await machineFacts(files))) return undefined;
  return texts.copied(state_dir);
}
