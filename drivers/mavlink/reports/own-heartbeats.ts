/**
 * Tells the heartbeats of an autopilot from those that another program sends under its ids: a companion computer, a camera, a
 * router (ArduPilot#7088, mavros#646, MAVProxy#598, mavp2p#46). Its mode and arming would change each second.
 */
import { type Autopilot, autopilotOf, senderOf } from './kind.ts';
import type { Messages } from '../wire/messages.ts';

type Heartbeat = Pick<Messages['HEARTBEAT'], 'autopilot' | 'base_mode' | 'type'>;

/** MAV_AUTOPILOT_GENERIC, which programs send that are none. */
const generic = 0;
/** ArduPilot and PX4 name their mode in each heartbeat. */
const base_mode_custom = 1;
const named: ReadonlySet<Autopilot> = new Set(['ardupilot', 'px4']);
const alarm_ms = 30_000;

export class OwnHeartbeats {
  #autopilot: number | undefined;
  /** The one before the latest restart or silence: it may come back after another program. */
  #earlier: number | undefined;
  #namesMode = false;
  #alien_ms = Number.NEGATIVE_INFINITY;
  /** Kinds that another program has sent beside the autopilot. Such a program goes on when the autopilot restarts or falls silent. */
  readonly #programs = new Set<string>();

  /** Whether the autopilot may have sent it. */
  isOwn(heartbeat: Heartbeat, now_ms: number): boolean {
    const isOwn = this.#isPossible(heartbeat);
    if (isOwn) this.#adopt(heartbeat);
    else this.#noteAlien(heartbeat, now_ms);
    return isOwn;
  }

  /** Whether another program has sent such heartbeats beside the autopilot. */
  isOfProgram(heartbeat: Heartbeat): boolean {
    return this.#programs.has(programOf(heartbeat));
  }

  /** Whether another program has lately sent some. */
  hasAlien(now_ms: number): boolean {
    return now_ms - this.#alien_ms < alarm_ms;
  }

  /** After a restart another autopilot may be there. */
  restart(): void {
    this.#earlier = this.#autopilot ?? this.#earlier;
    this.#autopilot = undefined;
    this.#namesMode = false;
  }

  #isPossible(heartbeat: Heartbeat): boolean {
    if (senderOf(heartbeat).is !== 'autopilot' || this.isOfProgram(heartbeat)) return false;
    if (this.#autopilot === undefined || this.#autopilot === generic) return true;
    if (heartbeat.autopilot !== this.#autopilot) return heartbeat.autopilot === this.#earlier;
    return !this.#namesMode || namesMode(heartbeat);
  }

  /** One that names another autopilot may be a second vehicle, which stays when this one is switched off. */
  #noteAlien(heartbeat: Heartbeat, now_ms: number): void {
    this.#alien_ms = now_ms;
    const { autopilot } = heartbeat;
    if (autopilot === generic || autopilot === this.#autopilot) this.#programs.add(programOf(heartbeat));
  }

  /** The program may have been there first: what names an autopilot and a mode counts from then on. */
  #adopt(heartbeat: Heartbeat): void {
    if (heartbeat.autopilot !== this.#autopilot && this.#autopilot !== undefined) this.#namesMode = false;
    this.#autopilot = heartbeat.autopilot;
    this.#namesMode ||= named.has(autopilotOf(heartbeat)) && namesMode(heartbeat);
  }
}

function namesMode({ base_mode }: Heartbeat): boolean {
  return (base_mode & base_mode_custom) !== 0;
}

function programOf(heartbeat: Heartbeat): string {
  return `autopilot ${heartbeat.autopilot}, ${namesMode(heartbeat) ? 'with' : 'without'} a mode`;
}

// Notices that something happens often: keeps no more times than it needs, however fast they come.

export class Burst {
  readonly #count: number;
  readonly #window_ms: number;
  /** Oldest first. */
  readonly #at_ms: number[] = [];

  /** A burst is `count` times within the window. */
  constructor(count: number, window_ms: number) {
    this.#count = count;
    this.#window_ms = window_ms;
  }

  /** Notes one time; returns whether it ends a burst. `now_ms` is monotonic. */
  note(now_ms: number): boolean {
    this.#at_ms.push(now_ms);
    if (this.#at_ms.length > this.#count) this.#at_ms.shift();
    const [first = now_ms] = this.#at_ms;
    return this.#at_ms.length === this.#count && now_ms - first < this.#window_ms;
  }
}
