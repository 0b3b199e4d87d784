/** Which hardware an autopilot reports to be. It has two numbers for it: MAVLink 1 carries only the shorter one. */
import type { MavlinkVersion } from '../wire/frame.ts';
import type { Messages } from '../wire/messages.ts';
import { Burst } from './own-heartbeats.ts';

type Version = Messages['AUTOPILOT_VERSION'];

/** Undefined: it has none, or has not reported it. At least one is known. */
export interface HardwareId {
  readonly uid: string | undefined;
  /** Only in MAVLink 2. Boards of one make may have one `uid`; this one differs (PX4-Autopilot#13882). */
  readonly uid2: string | undefined;
}

/** The uid of every simulated PX4. */
const px4_simulator_uid = '4954414c44494e4f';
const capability_mavlink2 = 0x2000;
const others_max = 8;
/** Two vehicles behind one address both answer each request, one a moment after the other. */
const turns_of_two = 2;
const turns_window_ms = 75_000;

/** Returns undefined when the autopilot has no hardware id: software in the loop, old boards. */
export function hardwareIdOf({ uid, uid2 }: Version): HardwareId | undefined {
  const id = {
    uid: /^0*$/u.test(uid) || uid === px4_simulator_uid ? undefined : uid,
    uid2: uid2.some((byte) => byte !== 0) ? Buffer.from(uid2).toString('hex') : undefined,
  };
  return id.uid === undefined && id.uid2 === undefined ? undefined : id;
}

/** Undefined: they have no number in common that could differ, as an answer in MAVLink 1 and one in MAVLink 2. */
export function isSameHardware(a: HardwareId | undefined, b: HardwareId | undefined): boolean | undefined {
  if (a?.uid2 !== undefined && b?.uid2 !== undefined) return a.uid2 === b.uid2;
  return a?.uid === undefined || b?.uid === undefined ? undefined : a.uid === b.uid;
}

function canSendMavlink2({ capabilities }: Version): boolean {
  return ((capabilities % 2 ** 32) & capability_mavlink2) !== 0;
}

/** The hardware behind one address: what it is, what else it was called, and whether there are two. */
export class Hardware {
  #id: HardwareId | undefined;
  /** Reported by the same address without a restart: other names of the same vehicle. */
  readonly #others: HardwareId[] = [];
  #latest: HardwareId | undefined;
  /** What it was before the latest restart. */
  #replaced: HardwareId | undefined;
  #boots = 0;
  readonly #turns = new Burst(turns_of_two, turns_window_ms);
  #twofold_ms = Number.NEGATIVE_INFINITY;
  #awaitsLonger = false;

  get id(): HardwareId | undefined {
    return this.#id;
  }

  /** All numbers by which it is known, the longer one of its own first. */
  get names(): readonly string[] {
    const all = [this.#id, ...this.#others].flatMap((id) => [id?.uid2, id?.uid]);
    return [...new Set(all.filter((name) => name !== undefined))];
  }

  /** When two ids were last reported by turns, which one autopilot never does. */
  get twofold_ms(): number {
    return this.#twofold_ms;
  }

  /** Whether it has answered in MAVLink 1 only and can send MAVLink 2, in which its id is longer. */
  get awaitsLonger(): boolean {
    return this.#awaitsLonger;
  }

  /**
   * Returns whether it differs from the answer before. `boots`: restarts of the autopilot so far. Another vehicle behind the same
   * radio starts, and then has another id.
   */
  receive(
    version: Version,
    {
      in: in_version,
      boots,
      now_ms,
    }: { readonly in: MavlinkVersion; readonly boots: number; readonly now_ms: number },
  ): boolean {
    const id = hardwareIdOf(version);
    this.#awaitsLonger = in_version === 1 && canSendMavlink2(version) && this.#id?.uid2 === undefined;
    if (!id) return false;
    const hasRestarted = boots !== this.#boots;
    this.#boots = boots;
    if (isSameHardware(this.#id, id) !== false) this.#merge(id);
    else if (hasRestarted) this.#replace(id);
    else if (isSameHardware(this.#replaced, id) === true) this.#restore(id);
    else this.#addOther(id);
    const isTurn = !hasRestarted && isSameHardware(this.#latest, id) === false;
    this.#latest = id;
    if (isTurn && this.#turns.note(now_ms)) this.#twofold_ms = now_ms;
    return isTurn;
  }

  #merge({ uid, uid2 }: HardwareId): void {
    this.#id = { uid: this.#id?.uid ?? uid, uid2: this.#id?.uid2 ?? uid2 };
  }

  #replace(id: HardwareId): void {
    this.#replaced = this.#id;
    this.#others.length = 0;
    this.#id = id;
  }

  /** The one from before the restart is there too. */
  #restore(id: HardwareId): void {
    if (this.#id) this.#addOther(this.#id);
    this.#replaced = undefined;
    this.#id = id;
  }

  #addOther(id: HardwareId): void {
    const isKnown = this.#others.some((other) => isSameHardware(other, id) === true);
    if (!isKnown && this.#others.length < others_max) this.#others.push(id);
  }
}
