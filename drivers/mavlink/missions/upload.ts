/**
 * Sends items to a vehicle, which requests each of them. ArduPilot stores every item as it arrives and drops the old ones at the
 * start, so that an upload that ends in the middle leaves a part; PX4 keeps the old ones until it has all.
 */
import { messageOf } from '../../../src/platform/errors.ts';
import { sleep } from '../../../src/platform/time.ts';
import type { Messages } from '../wire/messages.ts';
import type { StoredItem } from './item.ts';
import type { MissionKind } from '../vehicles/mission-kinds.ts';
import { ackText, texts } from './texts.ts';
import {
  ack_accepted,
  ack_cancelled,
  requests_max,
  Transfer,
  TransferBusy,
  type TransferTask,
} from './transfer.ts';
import type { Addressee } from '../vehicles/addressee.ts';

/** A vehicle that gave up in the middle gets everything again. */
const attempts_max = 3;
const attempt_pause_ms = 1_000;
/** MAV_MISSION_RESULT of a transfer that failed, and not because of its items. */
const ack_error = 1;
/** An item came twice or late: the transfer continues. */
const ack_sequence = 13;

export interface UploadTask extends TransferTask {
  /** Returns why nothing more may be sent, checked before each message. */
  readonly obstacle: () => string | undefined;
}

/** How the sending ended. `sent`: items that the vehicle requested. */
export type Sent =
  | { readonly is: 'acknowledged' | 'unacknowledged'; readonly sent: number }
  /** Another station transfers; nothing was changed. */
  | { readonly is: 'busy'; readonly sent: 0; readonly reason: string }
  /** `reason` is a sentence; `refused`: in the words of the vehicle. */
  | { readonly is: 'cut' | 'refused'; readonly sent: number; readonly reason: string };

/** Sends the items and never throws: what the vehicle holds afterwards must be read in any case. */
export async function sendItems(
  to: Addressee,
  kind: MissionKind,
  items: readonly StoredItem[],
  task: UploadTask,
): Promise<Sent> {
  let last: Sent = { is: 'cut', sent: 0, reason: texts.unanswered(to.name, texts.the_upload(kind), 0) };
  const { contact } = to;
  const hasRestarted = to.watchStart();
  const begun_ms = performance.now();
  for (let attempt = 1; attempt <= attempts_max; attempt += 1) {
    const upload = new Upload(to, kind, { items, task });
    const result = await upload.run(begun_ms);
    if (result !== 'again') return result;
    last = { is: 'cut', sent: upload.sent, reason: texts.gave_up(to.name, attempt) };
    await sleep(Math.max(0, Math.min(attempt_pause_ms, upload.left_ms)), task.signal);
    // What was checked before the upload was true of the vehicle before its restart.
    if (hasRestarted() || to.contact !== contact) return { ...last, reason: texts.interrupted(to.name) };
  }
  return last;
}

class Upload extends Transfer {
  readonly #items: readonly StoredItem[];
  readonly #task: UploadTask;
  #began_ms = performance.now();
  /** The request that was answered last; undefined before the first. */
  #answered: number | undefined;
  sent = 0;

  constructor(
    to: Addressee,
    kind: MissionKind,
    { items, task }: { readonly items: readonly StoredItem[]; readonly task: UploadTask },
  ) {
    super(to, kind, task);
    this.#items = items;
    this.#task = task;
  }

  /** Begins again while another station transfers, which has begun before `begun_ms` or later. */
  async run(begun_ms: number): Promise<Sent | 'again'> {
    try {
      for (;;) {
        const result = await this.#serve();
        if (result !== 'busy') return result;
        await this.waitForOther(begun_ms);
      }
    } catch (error) {
      const reason = messageOf(error);
      if (error instanceof TransferBusy) return { is: 'busy', sent: 0, reason };
      this.abandon();
      return { is: 'cut', sent: this.sent, reason };
    }
  }

  /** Answers requests until the vehicle has acknowledged or is silent. */
  async #serve(): Promise<Sent | 'again' | 'busy'> {
    let silent = 0;
    this.#began_ms = performance.now();
    let since_ms = this.#began_ms;
    this.#sendCount();
    while (silent < requests_max) {
      const obstacle = this.#task.obstacle();
      if (obstacle !== undefined) {
        this.abandon();
        return { is: 'cut', sent: this.sent, reason: obstacle };
      }
      await this.wait(() => this.#ack() ?? this.#request(since_ms), this.waitFor(silent));
      // Looked at again: several messages may have arrived in one datagram.
      const ack = this.#ack();
      if (ack) return this.#ended(ack);
      const request = this.#request(since_ms);
      if (request) {
        if (silent === 0) this.answered(performance.now() - since_ms);
        // A request beyond the items is no progress.
        silent = request.seq < this.#items.length ? 0 : silent + 1;
        since_ms = performance.now();
        this.#sendItem(request.seq);
      } else {
        silent += 1;
        if (this.#answered === undefined) this.#sendCount();
        else this.#sendItem(this.#answered);
      }
    }
    this.abandon();
    if (this.sent === this.#items.length) return { is: 'unacknowledged', sent: this.sent };
    const what =
      this.#answered === undefined ? texts.the_upload(this.kind) : texts.item(this.kind, this.sent - 1);
    return { is: 'cut', sent: this.sent, reason: texts.unanswered(this.to.name, what, requests_max) };
  }

  #sendCount(): void {
    this.to.contact.send('MISSION_COUNT', { ...this.target, count: this.#items.length, opaque_id: 0 });
  }

  /** Requests beyond the items are not answered: they cannot be for this upload. */
  #sendItem(seq: number): void {
    const item = this.#items[seq];
    if (!item) return;
    // The first one is marked as the current one, as ground stations do.
    const current = this.kind === 'mission' && seq === 0 ? 1 : 0;
    this.to.contact.send('MISSION_ITEM_INT', { ...item, ...this.target, seq, current });
    this.#answered = seq;
    if (seq < this.sent) return;
    this.sent = seq + 1;
    this.progress(
      texts.writing(this.to.name, this.sent, this.#items.length),
      (60 * this.sent) / this.#items.length,
    );
  }

  /** MISSION_REQUEST is the older form of MISSION_REQUEST_INT; both are answered by MISSION_ITEM_INT. */
  #request(since_ms: number): Messages['MISSION_REQUEST'] | undefined {
    const request =
      this.received('MISSION_REQUEST_INT', since_ms) ?? this.received('MISSION_REQUEST', since_ms);
    // A vehicle requests in order: a request ahead of the order belongs to an earlier upload.
    return request && request.seq <= this.sent ? request : undefined;
  }

  #ack(): Messages['MISSION_ACK'] | undefined {
    const ack = this.received('MISSION_ACK', this.#began_ms);
    // Accepted before it has all items: the late answer to an earlier transfer.
    const isOther = ack?.type === ack_accepted && this.sent < this.#items.length;
    return ack?.type === ack_sequence || isOther ? undefined : ack;
  }

  async #ended({ type }: Messages['MISSION_ACK']): Promise<Sent | 'again' | 'busy'> {
    const { sent } = this;
    if (sent === 0 && this.isBusy(type)) return 'busy';
    if (type === ack_accepted) return { is: 'acknowledged', sent };
    // Nothing is wrong with the items: the vehicle was busy, or waited too long for one of them.
    if (type === ack_error || type === ack_cancelled) return 'again';
    const { name } = this.to;
    const what = texts.the_upload(this.kind);
    return { is: 'refused', sent, reason: await this.explained(texts.refused(name, what, ackText(type))) };
  }
}
