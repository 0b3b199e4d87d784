/** Addresses of the page's other files. */

/** The first module lies at the root of the page, whether the modules are served one by one or bundled. */
const first = document.querySelector('script[type="module"]');
const root = first instanceof HTMLScriptElement ? first.src : location.href;

/**
 * @param name below the root of the page
 * @returns its address
 */
export function pageFile(name: string): string {
  return new URL(name, root).href;
}
