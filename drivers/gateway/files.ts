/** Reads the small files of /proc and /sys, which are in memory and never make a program wait. */
import { readdirSync, readFileSync } from 'node:fs';

/** The text without white space at its ends; undefined when it cannot be read. */
export function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return undefined;
  }
}

export function readNumber(path: string): number | undefined {
  const text = readText(path);
  return text !== undefined && /^\d+$/u.test(text) ? Number(text) : undefined;
}

export function readNames(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
