/** The classes of upstream messages, most important first: what is sent first and given up last. */

export const lanes = ['task', 'presence', 'alarm', 'kit', 'feed'] as const;
export type Lane = (typeof lanes)[number];

export interface LaneRule {
  /** `sync`: accepted when it is on disk. `lazy`: sent at once, on disk only when it could not be delivered soon. */
  readonly durability: 'sync' | 'lazy';
  /** The broker keeps the newest for those who come later, and the outbox keeps only the newest of each topic. */
  readonly retain: boolean;
  /** May be given up when the buffer is full. */
  readonly evictable: boolean;
}

export const laneRules: Readonly<Record<Lane, LaneRule>> = {
  task: { durability: 'sync', retain: false, evictable: false },
  presence: { durability: 'sync', retain: true, evictable: false },
  alarm: { durability: 'sync', retain: false, evictable: true },
  kit: { durability: 'lazy', retain: false, evictable: true },
  feed: { durability: 'lazy', retain: false, evictable: true },
};
