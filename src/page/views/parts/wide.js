/** Whether there is room for two columns and the rail, as in the style sheets. */
const wide = globalThis.matchMedia?.('(min-width: 900px)');

/** @returns {boolean} */
export function isWideNow() {
  return wide?.matches ?? false;
}
