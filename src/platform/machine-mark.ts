/** Names this machine without giving its id away, which man:machine-id(5) asks to keep confidential. */
import { createHash } from 'node:crypto';
import { readTextUpToSync, small_bytes_max } from './bounded-file.ts';

const id_file = '/etc/machine-id';
/** 32 hexadecimal digits; an image that was never booted has `uninitialized` or nothing. */
const id_pattern = /^[0-9a-f]{32}$/u;

/** Undefined when the machine has no id. */
export function machineMark(file = id_file): string | undefined {
  const id = readId(file);
  return id === undefined ? undefined : createHash('sha256').update(`kit-connector ${id}`).digest('hex');
}

function readId(file: string): string | undefined {
  try {
    const id = readTextUpToSync(file, small_bytes_max).trim();
    return id_pattern.test(id) ? id : undefined;
  } catch {
    // Not every container has one.
    return undefined;
  }
}
