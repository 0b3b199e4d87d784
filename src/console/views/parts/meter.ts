/** A bar that shows a share. */
import { html } from './html.ts';

/** @param share of 1 */
export function meter(share: number, isWeak: boolean) {
  return html`<svg
    class=${isWeak ? 'meter weak' : 'meter'}
    viewBox="0 0 100 8"
    preserveAspectRatio="none"
    aria-hidden="true"
  >
    <rect class="all" width="100" height="8" />
    <rect width=${share * 100} height="8" />
  </svg>`;
}
