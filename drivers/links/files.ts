/** Reads the small files of /proc and /sys, which are in memory and never make a program wait. */
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';

/** The text without white space at its ends; undefined when it cannot be read, as `carrier` of an interface that is down. */
export function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return undefined;
  }
}

/** A whole number, decimal or with `0x` in front. */
export function readNumber(path: string): number | undefined {
  const text = readText(path);
  return text !== undefined && /^(?:\d+|0x[\da-f]+)$/iu.test(text) ? Number(text) : undefined;
}

/** Names in a directory; undefined when it cannot be read. */
export function readNames(path: string): readonly string[] | undefined {
  try {
    return readdirSync(path);
  } catch {
    return undefined;
  }
}

/** The last part of what a symbolic link points to. */
export function linkName(path: string): string | undefined {
  try {
    return basename(readlinkSync(path));
  } catch {
    return undefined;
  }
}

/** Also true for a link that leads nowhere. */
export function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
