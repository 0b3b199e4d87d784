/** What a WebSocket sends. For one kit: every change of it. For many: summaries of all kits of its key, and every change of the kits that it names. */
import type { WebSocket } from 'ws';
import type { z } from 'zod';
import { maySee, type Principal } from '../principal.ts';
import { clientFrame, fleetClientFrame } from '../api/frames.ts';
import type { ListedKit } from '../kit-list.ts';
import type { Changes } from '../changes.ts';
import { AlarmFollower } from './alarm-follower.ts';
import { KitFollower, type Waiting, type WantedAssets } from './kit-follower.ts';
import type { InTurn, KeyedSemaphore } from '../../platform/semaphore.ts';
import { type SharedSummaries, SummaryFollower } from './summaries.ts';
import { type SessionParts, SocketSession } from './socket-session.ts';
import type { Store } from '../store/sql-store.ts';

export interface LiveParts extends SessionParts {
  readonly kit_id: string;
  /** Whether the kit is one of the holder of a key. */
  readonly isKnown: (principal: Principal) => Promise<boolean>;
  readonly store: Store;
  readonly changes: Changes;
  /** Of all sockets. */
  readonly waiting: Waiting;
  /** Of the whole answers. */
  readonly turns: KeyedSemaphore;
}

/** Serves the socket until it is closed, by either side. */
export function serveSocket(socket: WebSocket, parts: LiveParts): void {
  const { turns } = parts;
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
    isOpenTo: parts.isKnown,
    isDue: () => follower?.isDue === true,
    writeNext: async () => {
      for (const frame of (await follower?.next()) ?? []) session.send(frame);
    },
  });
  session.start();
}

export interface FleetParts extends SessionParts {
  readonly store: Store;
  readonly changes: Changes;
  readonly shared: SharedSummaries;
  /** Of all sockets. */
  readonly waiting: Waiting;
  /** Of the whole answers. */
  readonly turns: KeyedSemaphore;
  readonly idsOf: (principal: Principal) => Promise<readonly string[]>;
  readonly list: (principal: Principal, kit_ids: readonly string[]) => Promise<readonly ListedKit[]>;
  /** Kits of one subscription. */
  readonly kits_max: number;
}

type Subscription = Extract<z.output<typeof fleetClientFrame>, { type: 'subscribe' }>;

/** Serves the socket until it is closed, by either side. */
export function serveFleetSocket(socket: WebSocket, parts: FleetParts): void {
  new FleetSocket(socket, parts).start();
}

class FleetSocket {
  readonly #parts: FleetParts;
  readonly #session: SocketSession;
  #subscription = new AbortController();
  #summaries: SummaryFollower | undefined;
  #alarms: AlarmFollower | undefined;
  #kits: ReadonlyMap<string, KitFollower> = new Map();
  /** The kit whose turn is next: each gets one frame in turn, so that a busy one delays no other. */
  #turn = 0;

  constructor(socket: WebSocket, parts: FleetParts) {
    this.#parts = parts;
    this.#session = new SocketSession(socket, parts, {
      read: (frame) => {
        const { data } = fleetClientFrame.safeParse(frame);
        return data?.type === 'subscribe' ? { type: 'subscribe', apply: () => this.#subscribe(data) } : data;
      },
      isOpenTo: async () => true,
      isDue: () =>
        this.#summaries?.isDue === true ||
        this.#alarms?.isDue === true ||
        [...this.#kits.values()].some(({ isDue }) => isDue),
      writeNext: async () => this.#writeNext(),
    });
  }

  start(): void {
    this.#session.start();
  }

  #subscribe({ summaries, alarms, kits, assets }: Subscription): void {
    const { principal, closed } = this.#session;
    if (!principal) return;
    const ids = [...new Set(kits)];
    const { store, changes, waiting, shared, idsOf, list, kits_max, turns } = this.#parts;
    if (ids.length > kits_max || !ids.every((kit_id) => maySee(principal, kit_id))) {
      this.#session.forbid(ids.length > kits_max ? `at most ${kits_max} kits` : 'kit not found');
      return;
    }
    this.#subscription.abort();
    this.#subscription = new AbortController();
    const signal = AbortSignal.any([this.#subscription.signal, closed]);
    const wake = (): void => void this.#session.pump();
    const inTurn: InTurn = async (work) => turns.run(principal.key_id, work);
    const wanted = assets === '*' ? assets : new Set(assets);
    this.#kits = new Map(
      ids.map((kit_id) => [
        kit_id,
        new KitFollower({ kit_id, wanted, store, changes, waiting, inTurn, wake, signal }),
      ]),
    );
    this.#summaries = summaries
      ? new SummaryFollower({ principal, shared, idsOf, list, inTurn, wake, signal })
      : undefined;
    this.#alarms = alarms
      ? new AlarmFollower({ principal, store, changes, inTurn, wake, signal })
      : undefined;
  }

  /** Alarms go first, then summaries, which are one frame a second at most. */
  async #writeNext(): Promise<void> {
    if (this.#alarms?.isDue) {
      this.#session.send(await this.#alarms.next());
      return;
    }
    const summaries = this.#summaries;
    if (summaries?.isDue) {
      this.#session.send(await summaries.next());
      return;
    }
    const entries = [...this.#kits];
    for (let step = 0; step < entries.length; step += 1) {
      const [kit_id, follower] = entries[(this.#turn + step) % entries.length] ?? [];
      if (!kit_id || !follower?.isDue) continue;
      this.#turn = (this.#turn + step + 1) % entries.length;
      const frames = await follower.next();
      for (const frame of frames) this.#session.send({ ...frame, kit_id });
      return;
    }
  }
}
