/** Which failsafes of a vehicle are active, from its own evidence: texts, events, states of battery and fence, its heartbeats. */
import type { z } from 'zod';
import type { droneFeeds, FailsafeType } from '../../../src/contract/drone-feeds.ts';
import type { Decoded, Messages } from '../wire/messages.ts';
import type { StatusText } from '../reports/status-text.ts';
import { type Contact, isArmed } from './contact.ts';
import { charge_states, failedSensors, fenceFeed } from './feeds.ts';
import { isArmingReason, isFenceOff } from './situation.ts';
import { texts } from './texts.ts';

type Evidence = Pick<Contact, 'autopilot' | 'latest'>;
type Feed = z.output<(typeof droneFeeds)['failsafe']>;

interface Cause {
  readonly since: string;
  readonly reason: string | null;
  /** It ends when the state that shows it does. Others end with their own words, or when the vehicle is no longer critical. */
  readonly isState: boolean;
  /** A heartbeat has shown it too. */
  wasCritical: boolean;
  /** Heartbeats without it since it began. */
  doubts: number;
}

/** MAV_STATE: critical (ArduPilot and PX4: a failsafe is active), emergency (crashed, engine failed), flight termination. */
const states_critical: ReadonlySet<number> = new Set([5, 6, 8]);
const state_termination = 8;
const severity_warning = 4;
const status_fresh_ms = 5_000;
/** A vehicle that is critical for so many heartbeats has sent why, if it does. */
const beats_unexplained = 3;
/** A PX4 in a failsafe shows it in each heartbeat: after so many without it there is none. */
const doubts_max = 2;

/**
 * Words of the texts in which a failsafe begins or ends, as ArduPilot has them (events.cpp, ekf_check.cpp, crash_check.cpp of Copter, Plane,
 * Rover; failsafe.cpp of Sub) and PX4 before its events.
 */
const words: readonly (readonly [FailsafeType, RegExp])[] = [
  ['battery', /batt/iu],
  ['link', /gcs|ground station|data ?link|heartbeat lost/iu],
  ['rc', /radio|throttle|\brc\b|manual control|pilot input|(?:short|long) event/iu],
  ['ekf', /ekf|dead ?reckoning/iu],
  ['fence', /fence/iu],
  ['terrain', /terrain/iu],
  ['crash', /crash/iu],
  ['motor', /thrust loss|motor|engine/iu],
  ['leak', /leak/iu],
  ['termination', /terminat/iu],
];
const begins =
  /failsafe|^crash|potential thrust loss|fence breach|leak detected|heartbeat lost|^lost manual control|flight terminat|^terminating/iu;
const ends = /cleared|deactivated|recovered|resolved|regained|\boff\b/iu;
/** What is no longer so once the vehicle is no longer critical. */
const ends_with_status: ReadonlySet<FailsafeType> = new Set([
  'battery',
  'link',
  'rc',
  'ekf',
  'terrain',
  'termination',
  'other',
]);
/** What a sensor that has failed says about a vehicle that is critical. */
const sensor_types: Readonly<Partial<Record<string, FailsafeType>>> = {
  rc_receiver: 'rc',
  battery: 'battery',
  geofence: 'fence',
  ahrs: 'ekf',
  terrain: 'terrain',
  propulsion: 'motor',
};

export class Failsafes {
  readonly #causes = new Map<FailsafeType, Cause>();
  /** By battery: how it is, while that is worse than low. */
  readonly #batteries = new Map<number, string>();
  #armed: boolean | undefined;
  #critical_beats = 0;
  #isKnown = false;
  #published = '';
  readonly #publish: (feed: Feed) => void;

  constructor(publish: (feed: Feed) => void) {
    this.#publish = publish;
  }

  receive({ name, fields }: Decoded, contact: Evidence, now_ms: number): void {
    if (name === 'HEARTBEAT') this.#beat(fields, contact, now_ms);
    else if (name === 'BATTERY_STATUS') this.#battery(fields);
    else if (name === 'FENCE_STATUS') this.#fence(fields);
    else if (name === 'SYS_STATUS' && this.#causes.has('fence')) this.#endFence(contact, now_ms);
    else return;
    this.#report();
  }

  text({ severity, text }: StatusText): void {
    if (!begins.test(text) || isArmingReason(text)) return;
    const named = words.flatMap(([type, pattern]) => (pattern.test(text) ? [type] : []));
    const types: readonly FailsafeType[] = named.length > 0 ? named : ['other'];
    if (ends.test(text)) for (const type of types) this.#end(type);
    else if (severity <= severity_warning) for (const type of types) this.#begin(type, text);
    this.#report();
  }

  /** PX4 reports in events which failsafe begins; `text`: what it means, where that is known. */
  begin(types: readonly FailsafeType[], text: string | null): void {
    for (const type of types) this.#begin(type, text);
    this.#report();
  }

  /** Clears everything after a restart of the autopilot. */
  restart(): void {
    this.#causes.clear();
    this.#batteries.clear();
    this.#critical_beats = 0;
  }

  #beat(heartbeat: Messages['HEARTBEAT'], contact: Evidence, now_ms: number): void {
    const armed = isArmed(heartbeat);
    // What only texts have shown belongs to the flight before.
    if (armed && this.#armed === false) this.#endAll(({ isState }) => !isState);
    this.#armed = armed;
    this.#isKnown = true;
    if (!states_critical.has(heartbeat.system_status)) {
      this.#critical_beats = 0;
      this.#endAll((cause, type) => {
        cause.doubts += 1;
        const isDoubtful = contact.autopilot === 'px4' && cause.doubts > doubts_max;
        return !cause.isState && (isDoubtful || (cause.wasCritical && ends_with_status.has(type)));
      });
      return;
    }
    this.#critical_beats += 1;
    if (heartbeat.system_status === state_termination) this.#begin('termination', null);
    for (const cause of this.#causes.values()) cause.wasCritical = true;
    if (this.#causes.size === 0 && this.#critical_beats >= beats_unexplained) this.#explain(contact, now_ms);
  }

  /** The kit was started after the vehicle had sent why, or that was lost. */
  #explain({ latest }: Evidence, now_ms: number): void {
    const status = latest.fresh('SYS_STATUS', status_fresh_ms, now_ms);
    const low =
      latest.fresh('BATTERY_STATUS', status_fresh_ms, now_ms)?.charge_state === charge_states.indexOf('low');
    const failed = status ? failedSensors(status).flatMap((sensor) => sensor_types[sensor] ?? []) : [];
    const types = [...failed, ...(low ? (['battery'] as const) : [])];
    for (const type of types.length > 0 ? types : (['other'] as const)) this.#begin(type, null);
    for (const cause of this.#causes.values()) cause.wasCritical = true;
  }

  #battery({ id, charge_state }: Messages['BATTERY_STATUS']): void {
    const state = charge_states[charge_state];
    const isFailing =
      state === 'critical' || state === 'emergency' || state === 'failed' || state === 'unhealthy';
    if (isFailing) this.#batteries.set(id, texts.battery_state(id, state));
    else if (!this.#batteries.delete(id)) return;
    const [worst] = this.#batteries.values();
    if (worst === undefined) this.#end('battery', { isState: true });
    else this.#begin('battery', worst, { isState: true });
  }

  #fence(status: Messages['FENCE_STATUS']): void {
    const { breached, breach_type } = fenceFeed(status);
    if (breached === true) this.#begin('fence', texts.fence_breached(breach_type), { isState: true });
    else this.#end('fence');
  }

  #endFence(contact: Evidence, now_ms: number): void {
    if (isFenceOff(contact, now_ms)) this.#end('fence', { isState: true });
  }

  #begin(type: FailsafeType, reason: string | null, { isState } = { isState: false }): void {
    const known = this.#causes.get(type);
    const since = known?.since ?? new Date().toISOString();
    const its = { reason: known?.reason ?? reason, isState: isState || known?.isState === true };
    this.#causes.set(type, { since, ...its, wasCritical: known?.wasCritical ?? false, doubts: 0 });
  }

  /** `isState`: only if a state has shown it. */
  #end(type: FailsafeType, { isState } = { isState: false }): void {
    if (!isState || this.#causes.get(type)?.isState === true) this.#causes.delete(type);
  }

  #endAll(isOver: (cause: Cause, type: FailsafeType) => boolean): void {
    for (const [type, cause] of this.#causes) if (isOver(cause, type)) this.#causes.delete(type);
  }

  #report(): void {
    if (!this.#isKnown) return;
    const hasNamed = [...this.#causes.keys()].some((type) => type !== 'other');
    const shown = [...this.#causes].filter(([type]) => type !== 'other' || !hasNamed);
    const causes = shown.map(([type, { since, reason }]) => ({ type, since, reason }));
    const text = JSON.stringify(causes);
    if (text === this.#published) return;
    this.#published = text;
    const types = causes.map(({ type }) => type);
    const detected = types.length > 0;
    const severity = detected ? 'critical' : 'notice';
    this.#publish({ detected, severity, types, causes, timestamp: new Date().toISOString() });
  }
}
