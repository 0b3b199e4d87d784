/** Sentences of the gateway driver that people read; tests refer to them by name. */
export const texts = {
  proc_unreadable: (path: string) => `${path} cannot be read; check options.roots.proc`,
} as const;
