/** Screens whose modules are fetched when they are first shown, or in idle time. */
import type { Actions } from '../../types.d.ts';

export interface Lazy<T> {
  /** The module, once it is loaded. */
  now: () => T | undefined;
  /** Starts loading; draws again when it is there. */
  load: (act: Actions) => void;
}

/** Attempts in vain at what a person waits for, after which the page is loaded anew. */
const attempts_max = 3;
const reload_every_ms = 60_000;

/**
 * Loads the page anew where the service answers: after an upgrade the files of this page are gone (lightdash/lightdash#24685), and
 * some browsers never ask again for a module that they once missed (whatwg/html#6768).
 */
async function reload() {
  const name = 'loaded';
  if (Date.now() - Number(sessionStorage.getItem(name)) < reload_every_ms) return;
  if (!(await fetch('/', { cache: 'no-store' })).ok) return;
  sessionStorage.setItem(name, String(Date.now()));
  location.reload();
}

export function lazy<T>(fetchModule: () => Promise<T>): Lazy<T> {
  let module: T | undefined;
  let isLoading = false;
  let attempts = 0;
  const fetchOnce = async (act: Actions) => {
    try {
      module = await fetchModule();
      act.arrived();
    } catch {
      // Tried again at the next drawing: the link to the service may be lost now.
      attempts += 1;
      if (attempts >= attempts_max) await reload().catch(() => undefined);
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

const sheets: Map<string, Promise<void>> = new Map();

/**
 * Loads a style sheet that the first view does not need, once. Resolves when it applies.
 * @param file in `styles/`
 */
export async function loadStyles(file: string) {
  const known = sheets.get(file);
  if (known) return known;
  const link = document.createElement('link');
  const { promise, resolve, reject }: PromiseWithResolvers<void> = Promise.withResolvers();
  sheets.set(file, promise);
  link.rel = 'stylesheet';
  link.href = pageFile(`styles/${file}`);
  link.onload = () => resolve();
  link.onerror = () => {
    link.remove();
    sheets.delete(file);
    reject(new Error(`${file} was not loaded`));
  };
  // The last sheet adapts the others to the width: it stays last.
  [...document.querySelectorAll('link[rel="stylesheet"]')].at(-1)?.before(link);
  return promise;
}

/**
 * The first module lies at the root of the page, whether the modules are served one by one or bundled.
 * @param name below the root of the page
 * @returns its address
 */
export function pageFile(name: string): string {
  const first = document.querySelector('script[type="module"]');
  return new URL(name, first instanceof HTMLScriptElement ? first.src : location.href).href;
}
