/** The rooms whose coverage is measured (`vitest.coverage.config.ts`): those that decide about messages and tasks. */
export const covered_rooms = [
  'config',
  'contract',
  'driver',
  'geo',
  'hub',
  'mqtt',
  'outbox',
  'tasks',
  'uplink',
] as const;

/** Their unit tests. */
export const covered_tests = covered_rooms.map((room) => `test/unit/${room}/**/*.test.ts`);
