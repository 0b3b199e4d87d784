/** Reads values of unknown shape. */

/**
 * @param {unknown} value
 * @returns {value is Readonly<Record<string, unknown>>}
 */
export function isRecord(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {unknown}
 */
export function field(value, name) {
  return isRecord(value) ? own(value, name) : undefined;
}

/**
 * What stands under a name that others chose: every object has a `constructor`, which is none of them.
 * @template T
 * @param {Readonly<Record<string, T>>} table
 * @param {string} name
 * @returns {T | undefined}
 */
export function own(table, name) {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

/**
 * The items of a list; none where it is no list.
 * @param {unknown} value
 * @returns {readonly unknown[]}
 */
export function listIn(value) {
  return Array.isArray(value) ? value : [];
}

/**
 * @param {string} text
 * @returns {unknown} undefined when it is no JSON
 */
export function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * @param {unknown} value
 * @returns {string} empty where it is no text
 */
export function textIn(value) {
  return typeof value === 'string' ? value : '';
}
