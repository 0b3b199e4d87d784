/** A simulated vehicle with a mission, which loses frames in both directions when told to. */
import type { Decoded, Messages } from '../../drivers/mavlink/wire/messages.ts';
import { FakeDrone } from './fake-drone.ts';

type Item = Messages['MISSION_ITEM_INT'];

export class MissionDrone extends FakeDrone {
  mission: readonly Item[] = [];
  /** MAV_MISSION_RESULT for every request instead of an answer. */
  refuses: number | undefined;
  /** The chance that an arriving frame is lost. */
  loss_in = 0;
  /** Answers are addressed to this station instead of to the sender. */
  answers_to: { readonly sysid: number; readonly compid: number } | undefined;
  /** Called before each item is sent. */
  onItem: ((seq: number) => void) | undefined;
  readonly item_requests: number[] = [];
  readonly mission_acks: number[] = [];

  protected override handle(
    message: Decoded,
    from: { readonly sysid: number; readonly compid: number },
  ): void {
    const { name, fields } = message;
    if (name !== 'MISSION_REQUEST_LIST' && name !== 'MISSION_REQUEST_INT' && name !== 'MISSION_ACK') {
      super.handle(message, from);
      return;
    }
    if (fields.target_system !== this.options.sysid || Math.random() < this.loss_in) return;
    const { sysid, compid } = this.answers_to ?? from;
    const to = { target_system: sysid, target_component: compid, mission_type: 0 };
    if (name === 'MISSION_ACK') this.mission_acks.push(fields.type);
    else if (this.refuses !== undefined)
      this.send('MISSION_ACK', { ...to, type: this.refuses, opaque_id: 0 });
    else if (name === 'MISSION_REQUEST_LIST') {
      this.send('MISSION_COUNT', { ...to, count: this.mission.length, opaque_id: 0 });
    } else {
      this.item_requests.push(fields.seq);
      this.onItem?.(fields.seq);
      const item = this.mission[fields.seq];
      if (item) this.send('MISSION_ITEM_INT', { ...item, ...to });
    }
  }
}

/** An item of a mission; a waypoint 50 m above home unless told otherwise. */
export function missionItem(seq: number, about: Partial<Item> = {}): Item {
  const params = { param1: 0, param2: 0, param3: 0, param4: Number.NaN };
  const to = { target_system: 0, target_component: 0, mission_type: 0, current: 0, autocontinue: 1 };
  const place = { x: 473_977_420 + seq * 1_000, y: 85_455_940 - seq * 1_000, z: 50, frame: 3 };
  return { ...params, ...place, ...to, seq, command: 16, ...about };
}
