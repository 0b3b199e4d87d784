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
  return isRecord(value) ? value[name] : undefined;
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
