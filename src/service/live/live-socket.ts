/** One WebSocket of a client for one kit. */
import type { WebSocket } from 'ws';
import { clientFrame } from '../api/frames.ts';
import { maySee } from '../access/principal.ts';
import type { Store } from '../store/store.ts';
import type { Changes } from './changes.ts';
import type { InTurn, KeyedSemaphore } from '../../platform/semaphore.ts';
import { KitFollower, type WantedAssets } from './kit-follower.ts';
import { type SessionParts, SocketSession } from './socket-session.ts';
import type { Waiting } from './waiting.ts';

export interface LiveParts extends SessionParts {
  readonly kit_id: string;
  readonly store: Store;
  readonly changes: Changes;
  /** Of all sockets. */
  readonly waiting: Waiting;
  /** Of the whole answers. */
  readonly turns: KeyedSemaphore;
}

/** Serves the socket until it is closed, by either side. */
export function serveSocket(socket: WebSocket, parts: LiveParts): void {
  const { kit_id, turns } = parts;
  let follower: KitFollower | undefined;
  let subscription = new AbortController();
  const follow = (wanted: WantedAssets): void => {
    subscription.abort();
    subscription = new AbortController();
    const signal = AbortSignal.any([subscription.signal, session.closed]);
    const inTurn: InTurn = async (work) => turns.run(session.principal?.key_id ?? '', work);
    follower = new KitFollower({ ...parts, wanted, signal, inTurn, wake: () => void session.pump() });
  };
  const session = new SocketSession(socket, parts, {
    read: (frame) => {
      const { data } = clientFrame.safeParse(frame);
      if (data?.type !== 'subscribe') return data;
      const wanted = data.assets === '*' ? data.assets : new Set(data.assets);
      return { type: 'subscribe', apply: () => follow(wanted) };
    },
    isOpenTo: (principal) => maySee(principal, kit_id),
    isDue: () => follower?.isDue === true,
    writeNext: async () => {
      for (const frame of (await follower?.next()) ?? []) session.send(frame);
    },
  });
  session.start();
}
