/** Reads the small files of /proc and /sys. Anything unreadable, such as `carrier` of an interface that is down, is undefined. */
import { lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { basename } from 'node:path';
import { readTextUpTo, readTextUpToSync, table_bytes_max } from '../../platform/bounded-file.ts';

/** The text without white space at its ends. Blocks: for files that the kernel answers from memory. */
export function readTextSync(path: string): string | undefined {
  return attempt(() => readTextUpToSync(path, table_bytes_max).trim());
}

/** A whole number, decimal or with `0x` in front. */
export function readNumberSync(path: string): number | undefined {
  const text = readTextSync(path);
  return text !== undefined && /^(?:\d+|0x[\da-f]+)$/iu.test(text) ? Number(text) : undefined;
}

/** Names in a directory. */
export function readNamesSync(path: string): readonly string[] | undefined {
  return attempt(() => readdirSync(path));
}

/** The last part of what a symbolic link points to. */
export function linkNameSync(path: string): string | undefined {
  return attempt(() => basename(readlinkSync(path)));
}

/** Also true for a link that leads nowhere. */
export function existsSync(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** As `readTextSync`, for files whose hardware may answer slowly. */
export async function readText(path: string): Promise<string | undefined> {
  return readTextUpTo(path, table_bytes_max).then((text) => text.trim(), missing);
}

/** As `readNamesSync`. */
export async function readNames(path: string): Promise<readonly string[] | undefined> {
  return readdir(path).catch(missing);
}

/** As `existsSync`. */
export async function exists(path: string): Promise<boolean> {
  return (await lstat(path).catch(missing)) !== undefined;
}

function missing(): undefined {
  return undefined;
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
