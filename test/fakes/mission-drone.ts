/** A simulated vehicle with missions that loses frames in both directions and breaks the mission protocol when told to. */
import {
  type MissionMessage,
  SimMissions,
  type SimMissionsParts,
  type Station,
} from '../../drivers/mavlink/sim/missions.ts';
import type { Decoded, Messages } from '../../drivers/mavlink/wire/messages.ts';
import { seededRandom } from '../support/random.ts';
import { FakeDrone } from './fake-drone.ts';

type Item = Messages['MISSION_ITEM_INT'];

export class MissionDrone extends FakeDrone {
  declare readonly missions: UnrulyMissions;
  /** The chance that an arriving frame of the mission protocol is lost. */
  loss_in_pct = 0;
  /** Every frame of the mission protocol is sent twice. */
  twice = false;
  readonly #chance = seededRandom(1);

  set mission(items: readonly Item[]) {
    this.missions.stored[0] = [...items];
  }

  get mission(): readonly Item[] {
    return this.missions.stored[0] ?? [];
  }

  protected override makeMissions(parts: SimMissionsParts): UnrulyMissions {
    return new UnrulyMissions({
      ...parts,
      reply: (name, fields) => {
        parts.reply(name, fields);
        if (this.twice) parts.reply(name, fields);
      },
    });
  }

  protected override handle(
    message: Decoded,
    from: { readonly sysid: number; readonly compid: number },
  ): void {
    const isLost = message.name.startsWith('MISSION_') && this.#chance.below(100) < this.loss_in_pct;
    if (!isLost) super.handle(message, from);
  }
}

class UnrulyMissions extends SimMissions {
  /** MAV_MISSION_RESULT for each message of this kind, or from this item of an upload on. */
  refuses: { readonly type: number; readonly at?: number } | undefined;
  /** Nothing is answered any more from this item of an upload on. */
  silent_at: number | undefined;
  /** The first request for this item of an upload has another number. */
  wrong_at: number | undefined;
  /** Changes each item before it is stored. */
  tamper: ((item: Item) => Item) | undefined;
  /** Uploads and removals are acknowledged without an effect. */
  forgetful = false;
  /** Answers are addressed to this station instead of to the sender. */
  answers_to: Station | undefined;
  /** Called with each message that arrives; true: it is lost. */
  intercept: ((message: MissionMessage) => boolean) | undefined;
  /** Called before each item is sent. */
  onItem: ((seq: number) => void) | undefined;
  /** Called with each item that arrives. */
  onReceived: ((seq: number) => void) | undefined;
  /** Whether a station has changed something, or tried to. */
  get hasReceived(): boolean {
    return this.received.some((name) => name === 'MISSION_COUNT' || name === 'MISSION_CLEAR_ALL');
  }

  readonly item_requests: number[] = [];
  readonly acks: number[] = [];
  readonly received: MissionMessage['name'][] = [];

  override handle(message: MissionMessage, from: Station, now_ms: number): void {
    const to = this.answers_to ?? from;
    this.received.push(message.name);
    if (this.silent_at === 0 || this.intercept?.(message) === true) return;
    this.#note(message);
    const { name, fields } = message;
    if (this.#refuse(message, to)) this.receiving = undefined;
    else if (name === 'MISSION_ITEM_INT' && fields.seq === this.silent_at) this.silent_at = 0;
    else if (this.forgetful) {
      const before = this.stored.map((list) => [...list]);
      super.handle(message, to, now_ms);
      for (const [type, list] of before.entries()) this.stored[type] = list;
    } else super.handle(message, to, now_ms);
  }

  #note({ name, fields }: MissionMessage): void {
    if (name === 'MISSION_ACK') this.acks.push(fields.type);
    else if (name === 'MISSION_ITEM_INT') this.onReceived?.(fields.seq);
    else if (name === 'MISSION_REQUEST_INT') {
      this.item_requests.push(fields.seq);
      this.onItem?.(fields.seq);
    }
  }

  override tick(now_ms: number): void {
    if (this.silent_at !== 0) super.tick(now_ms);
  }

  protected override kept(item: Item): Item {
    return super.kept(this.tamper ? this.tamper(item) : item);
  }

  protected override request(receiving: Parameters<SimMissions['request']>[0], now_ms: number): void {
    if (this.wrong_at === receiving.items.length) {
      this.wrong_at = undefined;
      super.request({ ...receiving, items: [...receiving.items, ...receiving.items] }, now_ms);
      receiving.asked_ms = now_ms;
    } else super.request(receiving, now_ms);
  }

  #refuse({ name, fields }: MissionMessage, to: Station): boolean {
    if (!this.refuses || name === 'MISSION_ACK' || name === 'MISSION_SET_CURRENT') return false;
    const { at, type } = this.refuses;
    if (at !== undefined && (name !== 'MISSION_ITEM_INT' || fields.seq < at)) return false;
    this.ack(to, fields.mission_type, type);
    return true;
  }
}

/** An item of a mission; a waypoint 50 m above home unless told otherwise. */
export function missionItem(seq: number, about: Partial<Item> = {}): Item {
  const params = { param1: 0, param2: 0, param3: 0, param4: Number.NaN };
  const to = { target_system: 0, target_component: 0, mission_type: 0, current: 0, autocontinue: 1 };
  const place = { x: 473_977_420 + seq * 1_000, y: 85_455_940 - seq * 1_000, z: 50, frame: 3 };
  return { ...params, ...place, ...to, seq, command: 16, ...about };
}
