/** Whether there is room for two columns and the rail, as in the style sheets. */
const wide = globalThis.matchMedia?.('(min-width: 900px)');

export function isWideNow(): boolean {
  return wide?.matches ?? false;
}
