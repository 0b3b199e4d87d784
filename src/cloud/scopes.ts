/** What a key may do. */
export const scopes = [
  'read',
  'assets:write',
  'commands',
  'alarms',
  'history:erase',
  'webhooks',
  'keys',
] as const;
export type Scope = (typeof scopes)[number];
