/** Sentences of the clients driver that people read; tests refer to them by name. */
export const texts = {
  limit_exceeded: 'client limit exceeded; reporting the first ones (options.entries_max)',
  within_limit: 'client count back within the limit; reporting all',
  leases_unreadable: (files: string) => `cannot read ${files}`,
  interface_not_found: (names: string) => `interface ${names} not found; check options.interfaces`,
  no_bridge: 'no bridge with a hardware port found; set options.interfaces',
} as const;
