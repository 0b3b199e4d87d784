/** Reads values of unknown shape. */
import type { z } from 'zod';

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The JSON parser and the service have nothing but JSON in a record. */
export function isJsonObject(value: unknown): value is Readonly<Record<string, z.core.util.JSONType>> {
  return isRecord(value);
}

export function field(value: unknown, name: string): unknown {
  return isRecord(value) ? own(value, name) : undefined;
}

/** What stands under a name that others chose: every object has a `constructor`, which is none of them. */
export function own<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

/** The items of a list; none where it is no list. */
export function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** @returns undefined when it is no JSON */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** @returns empty where it is no text */
export function textIn(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
