/** Returns messages that did not reach the broker to the disk, from where the backlog sends them again. */
import type { Lane } from '../../contract/lanes.ts';
import type { Backlog } from './backlog.ts';
import type { Replay } from './replay.ts';
import type { LiveMoves } from './live-moves.ts';
import { livesOf, type Live, type OutgoingMessage } from './outgoing.ts';
import type { RowRef } from '../protocol.ts';
import type { StoreClient } from './disk/store-client.ts';

interface ReturnsOptions {
  readonly client: Pick<StoreClient, 'release'>;
  readonly moves: LiveMoves;
  readonly backlog: () => Backlog;
  readonly replay: Replay;
  readonly diskFailed: (error: unknown) => void;
}

export class Returns {
  readonly #options: ReturnsOptions;

  constructor(options: ReturnsOptions) {
    this.#options = options;
  }

  /** Takes messages that did not reach the broker, to send them again; `rest: false`: without a pause of their lanes. */
  takeBack(messages: readonly OutgoingMessage[], { rest = true } = {}): void {
    const lives: Live[] = [];
    const rows: RowRef[] = [];
    const batches: number[] = [];
    const touched = new Set<Lane>();
    for (const outgoing of messages) {
      const { content } = outgoing;
      lives.push(...livesOf(outgoing));
      if (content.kind === 'replay') this.#options.replay.giveBack(outgoing);
      if (content.kind === 'row') rows.push(content.row);
      if (content.kind === 'batch') {
        batches.push(content.batch.token);
        touched.add(content.batch.lane);
      }
    }
    const { released } = this.#options.moves.move(lives, 'taken_back');
    this.#release([...rows, ...released], batches, touched);
    if (rest) this.#rest(touched);
  }

  /** Moves messages from memory to the disk. */
  putDown(lives: readonly Live[], soon_ms?: number): void {
    this.release(this.#options.moves.move(lives, 'taken_back', soon_ms).released);
  }

  /** Releases rows that the main thread holds and does not send. */
  release(rows: readonly RowRef[]): void {
    const touched = new Set<Lane>();
    this.#release(rows, [], touched);
    this.#rest(touched);
  }

  #release(rows: readonly RowRef[], batches: readonly number[], touched: Set<Lane>): void {
    if (rows.length === 0 && batches.length === 0) return;
    const refs = rows.map(({ id, lane }) => ({ id, lane }));
    for (const { lane } of refs) touched.add(lane);
    this.#options.client.release({ rows: refs, batches }).catch(this.#options.diskFailed);
  }

  /** Lanes whose rows were just released are paused for a moment. */
  #rest(touched: ReadonlySet<Lane>): void {
    for (const lane of touched) this.#options.backlog().rest(lane);
  }
}
