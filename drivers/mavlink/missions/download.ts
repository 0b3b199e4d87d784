/** Reads the mission of a vehicle (MAVLink guide, "Mission Protocol"). It changes nothing on the vehicle. */
import type { CommandContext } from '../../../src/driver/command.ts';
import { CommandRefused } from '../../../src/errors.ts';
import type { Addressee } from '../commands/exchange.ts';
import type { Messages } from '../wire/messages.ts';
import { texts } from './texts.ts';

export type MissionItem = Messages['MISSION_ITEM_INT'];

/** More would not fit the report of a task. */
export const items_max = 700;
/** Of one message; with every fifth frame lost in each direction, one of 10 million exchanges fails. */
const requests_max = 16;
/** A slow radio answers later; the second answer does no harm. */
const answer_wait_ms = 500;
/** Part of a task's time that is reserved for its report. */
const report_reserve_ms = 200;
const progress_every = 10;
const mission_type = 0;
const ack_accepted = 0;
const ack_names: readonly string[] = [
  'ACCEPTED',
  'ERROR',
  'UNSUPPORTED_FRAME',
  'UNSUPPORTED',
  'NO_SPACE',
  'INVALID',
  'INVALID_PARAM1',
  'INVALID_PARAM2',
  'INVALID_PARAM3',
  'INVALID_PARAM4',
  'INVALID_PARAM5_X',
  'INVALID_PARAM6_Y',
  'INVALID_PARAM7',
  'INVALID_SEQUENCE',
  'DENIED',
  'OPERATION_CANCELLED',
];

/** Resolves with the items in their order; throws `CommandRefused` if not all of them could be read. */
export async function downloadMission(
  to: Addressee,
  context: CommandContext,
): Promise<readonly MissionItem[]> {
  const transfer = new Transfer(to, context);
  const count = await transfer.count();
  if (count > items_max) throw new CommandRefused(texts.too_long(to.name, count, items_max));
  const items: MissionItem[] = [];
  for (let seq = 0; seq < count; seq += 1) {
    items.push(await transfer.item(seq));
    if (items.length % progress_every === 0) {
      context.progress(texts.reading(to.name, items.length, count), Math.round((100 * items.length) / count));
    }
  }
  transfer.end();
  return items;
}

/** The messages of one transfer. Another station may transfer at the same time: only what is addressed to us counts. */
class Transfer {
  readonly #to: Addressee;
  readonly #context: CommandContext;
  readonly #incarnation: string;
  readonly #target: { readonly target_system: number; readonly target_component: number };

  constructor(to: Addressee, context: CommandContext) {
    this.#to = to;
    this.#context = context;
    this.#incarnation = to.incarnation();
    this.#target = { target_system: to.contact.sysid, target_component: to.contact.compid };
  }

  async count(): Promise<number> {
    const { contact } = this.#to;
    return this.#exchange(
      texts.the_count,
      () => contact.send('MISSION_REQUEST_LIST', { ...this.#target, mission_type }),
      (since_ms) => this.#received('MISSION_COUNT', since_ms)?.count,
    );
  }

  async item(seq: number): Promise<MissionItem> {
    const { contact } = this.#to;
    return this.#exchange(
      texts.item(seq),
      () => contact.send('MISSION_REQUEST_INT', { ...this.#target, seq, mission_type }),
      (since_ms) => {
        const item = this.#received('MISSION_ITEM_INT', since_ms);
        return item?.seq === seq ? item : undefined;
      },
    );
  }

  /** Ends the transfer on the vehicle; if this is lost, the vehicle ends it after a while. */
  end(): void {
    const accepted = { ...this.#target, type: ack_accepted, mission_type, opaque_id: 0 };
    this.#to.contact.send('MISSION_ACK', accepted);
  }

  #received<K extends 'MISSION_ACK' | 'MISSION_COUNT' | 'MISSION_ITEM_INT'>(
    name: K,
    since_ms: number,
  ): Messages[K] | undefined {
    const { contact } = this.#to;
    const message = contact.latest.since(name, since_ms);
    if (!message || message.mission_type !== mission_type) return undefined;
    return contact.isToUs(message) ? message : undefined;
  }

  /** Repeats a request until it is answered. */
  async #exchange<T>(
    what: string,
    request: () => boolean,
    look: (since_ms: number) => T | undefined,
  ): Promise<T> {
    const { name } = this.#to;
    const since_ms = performance.now();
    for (let requests = 0; requests < requests_max; requests += 1) {
      request();
      const seen = await this.#wait(() => {
        const ack = this.#received('MISSION_ACK', since_ms);
        if (ack && ack.type !== ack_accepted) return { refusal: ack_names[ack.type] ?? `result ${ack.type}` };
        const answer = look(since_ms);
        return answer === undefined ? undefined : { answer };
      });
      if (seen && 'refusal' in seen) throw new CommandRefused(texts.refused(name, seen.refusal));
      if (seen) return seen.answer;
    }
    throw new CommandRefused(texts.unanswered(name, what, requests_max));
  }

  async #wait<T>(look: () => T | undefined): Promise<T | undefined> {
    const { changes, incarnation, name } = this.#to;
    const { signal } = this.#context;
    const left_ms = this.#context.remaining_ms() - report_reserve_ms;
    if (left_ms <= 0) throw new CommandRefused(texts.too_late(name));
    const seen = await changes.until(look, Math.min(answer_wait_ms, left_ms), signal);
    if (signal.aborted) throw new CommandRefused(texts.stopped(name));
    if (incarnation() !== this.#incarnation) throw new CommandRefused(texts.interrupted(name));
    return seen;
  }
}
