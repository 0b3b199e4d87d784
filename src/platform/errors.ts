/** The error classes of the connector, chosen by what the caller will do with them, and the words for what was thrown. */
import { getSystemErrorMap } from 'node:util';

/** The configuration cannot be used. The process prints every fault and exits with 78 (EX_CONFIG). */
export class ConfigInvalid extends Error {
  override readonly name = 'ConfigInvalid';
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join('\n'));
    this.faults = faults;
  }
}

/** What a path leads to is no file, or too large for what was asked for. The message follows the name of the file and has the remedy. */
export class FileRefused extends Error {
  override readonly name = 'FileRefused';
}

/** A device does not answer. The device session tries again, after pauses that grow to a minute. */
export class DeviceUnreachable extends Error {
  override readonly name = 'DeviceUnreachable';
}

/** A device that must not be asked again before `retry_ms` are over: it is busy, or its sessions are all taken. */
export class RetryLater extends DeviceUnreachable {
  readonly retry_ms: number;

  constructor(message: string, retry_ms: number) {
    super(message);
    this.retry_ms = retry_ms;
  }
}

/** A device rejects the connector (wrong password, wrong model). A person must act; the next attempts come hours apart. */
export class DeviceRejected extends Error {
  override readonly name = 'DeviceRejected';
  /** The device accepted the same credentials before, so that the rejection may end without a person: tried again sooner. */
  readonly may_pass: boolean;

  constructor(
    message: string,
    { may_pass = false, ...options }: ErrorOptions & { readonly may_pass?: boolean } = {},
  ) {
    super(message, options);
    this.may_pass = may_pass;
  }
}

/** A command is not carried out. The message is what the operator reads in `result.error`. */
export class CommandRefused extends Error {
  override readonly name = 'CommandRefused';
}

/** The end of each refusal of a command that did not reach its device, and only of those: it may be sent again. */
export const not_sent = 'command not sent';

/** A refusal of a command that did not reach its device. */
export function notSent(reason: string): string {
  return `${reason}; ${not_sent}`;
}

/** Faults of a disk that have a specific remedy. `busy`: another program has locked the file. */
export const storage_faults = ['full', 'read_only', 'busy'] as const;
export type StorageFault = (typeof storage_faults)[number];

/** A disk write failed: full, read-only or failing. The caller continues from memory. */
export class StorageUnavailable extends Error {
  override readonly name: string = 'StorageUnavailable';
  /** Undefined: another one, or none of the disk. */
  readonly fault: StorageFault | undefined;

  constructor(message: string, options?: ErrorOptions & { readonly fault?: StorageFault | undefined }) {
    super(message, options);
    this.fault = options?.fault;
  }
}

/** The disk reported an error for a request that it may have executed: the same request again shows whether it did. */
export class StorageUnsure extends StorageUnavailable {
  override readonly name = 'StorageUnsure';
}

/** A later version has changed the tables so that this one may not write them: only another program helps. The process exits with 78. */
export class SchemaRefused extends StorageUnavailable {
  override readonly name = 'SchemaRefused';
}

/** The database works, and other work has the rows or the connections for longer than the wait limit. Others can be stored meanwhile. */
export class StorageBusy extends StorageUnavailable {
  override readonly name = 'StorageBusy';
}

/** The program contradicts itself. The process ends and systemd starts it again. */
export class InvariantBroken extends Error {
  override readonly name = 'InvariantBroken';
}

/** The text of anything that was thrown. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** Where the C library has other words than libuv, hers: they are what a search finds. */
const other_words: readonly (readonly [code: string, words: string])[] = [
  ['EAI_AGAIN', 'temporary failure in name resolution'],
  ['EDQUOT', 'disk quota exceeded'],
  ['EEXIST', 'file exists'],
  ['EHOSTUNREACH', 'no route to host'],
  ['EIO', 'input/output error'],
  ['EISDIR', 'is a directory'],
  ['ENOTFOUND', 'name or service not known'],
];
const system_words: ReadonlyMap<string, string> = new Map([...getSystemErrorMap().values(), ...other_words]);

/** The standard words for an error of the operating system, such as `permission denied`; the message of any other. */
export function systemReason(thrown: unknown): string {
  const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : '';
  return system_words.get(code) ?? messageOf(thrown);
}

/** Whether the system names one of these codes as the cause, such as `ENOENT`. */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.some((code) => code === error.code);
}
