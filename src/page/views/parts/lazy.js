/** Screens whose modules are fetched when they are first shown, or in idle time. */
import { pageFile } from '../../world/page-file.js';

/** @import { Actions } from '../../types.d.ts' */

/**
 * @template T
 * @typedef {object} Lazy
 * @property {() => T | undefined} now the module, once it is loaded
 * @property {(act: Actions) => void} load starts loading; draws again when it is there
 */

/**
 * @template T
 * @param {() => Promise<T>} fetchModule
 * @returns {Lazy<T>}
 */
export function lazy(fetchModule) {
  /** @type {T | undefined} */
  let module;
  let isLoading = false;
  /** @param {Actions} act */
  const fetchOnce = async (act) => {
    try {
      module = await fetchModule();
      act.arrived();
    } catch {
      // Tried again at the next drawing: the link to the service may be lost now.
    } finally {
      isLoading = false;
    }
  };
  return {
    now: () => module,
    load: (act) => {
      if (module !== undefined || isLoading) return;
      isLoading = true;
      void fetchOnce(act);
    },
  };
}

/**
 * Loads a style sheet that the first view does not need. Resolves when it applies.
 * @param {string} file in `styles/`
 */
export async function loadStyles(file) {
  const link = document.createElement('link');
  /** @type {PromiseWithResolvers<void>} */
  const { promise, resolve, reject } = Promise.withResolvers();
  link.rel = 'stylesheet';
  link.href = pageFile(`styles/${file}`);
  link.onload = () => resolve();
  link.onerror = () => {
    link.remove();
    reject(new Error(`${file} was not loaded`));
  };
  // The last sheet adapts the others to the width: it stays last.
  [...document.querySelectorAll('link[rel="stylesheet"]')].at(-1)?.before(link);
  await promise;
}
