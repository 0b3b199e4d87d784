/** Sentences about endpoints that people read; tests refer to them by name. */
export const texts = {
  opened: 'endpoint opened',
  lost: 'endpoint lost; retrying',
  joined: 'station connected',
  left: 'station disconnected',
  full: 'endpoint has its maximum of stations; refusing others',
  own_ids: 'a station uses the ids of this kit; ignoring its frames, change its ids',
  own_link: 'a link receives from an endpoint of this driver; ignoring it, remove one of them',
  failed: (name: string, reason: string) => `${name}: ${reason}`,
  connect_timeout: (seconds: number) => `connection timed out after ${seconds} s`,
  closed_by_peer: 'connection closed by the other side',
  stalled: (seconds: number) => `the other side has accepted nothing for ${seconds} s`,
} as const;
