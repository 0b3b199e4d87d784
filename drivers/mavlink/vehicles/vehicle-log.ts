/** Logs the texts and events of vehicles: each text once a minute, with a limit for each vehicle. */
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';
import { SeenRecently } from '../../../src/platform/seen-recently.ts';
import { eventLevel, eventText, type VehicleEvent } from '../reports/px4-events.ts';
import type { StatusText } from '../reports/status-text.ts';
import { texts } from './texts.ts';
import type { Frame } from '../wire/frame.ts';

export interface Subject {
  readonly asset_key: string;
  /** False: not announced yet; its texts are logged for debugging only. */
  readonly isVehicle: boolean;
}

const severity_warning = 4;
const severity_debug = 7;
const text_repeat_ms = 60_000;
const texts_remembered_max = 200;

export class VehicleLog {
  readonly #log: DriverLog;
  readonly #logged = new SeenRecently<string>({ keep_ms: text_repeat_ms, max: texts_remembered_max });
  readonly #lines = new LineBudget();

  constructor(log: DriverLog) {
    this.#log = log;
  }

  text({ asset_key, isVehicle }: Subject, { severity, text }: StatusText): void {
    const facts = { asset_key, severity, text };
    const isQuiet = severity >= severity_debug || !isVehicle;
    if (isQuiet || !this.#isNew(`${asset_key} ${text}`) || !this.#mayWrite(asset_key))
      this.#log.debug(facts, texts.vehicle_text);
    else if (severity <= severity_warning) this.#log.warn(facts, texts.vehicle_warning);
    else this.#log.info(facts, texts.vehicle_text);
  }

  /** Logs an event. PX4 sends the more important ones as texts too. `text`: its meaning in the metadata of the firmware. */
  event({ asset_key, isVehicle }: Subject, event: VehicleEvent, text: string | undefined): void {
    const level = eventLevel(event);
    const meaning = text ?? eventText(event) ?? null;
    const facts = { asset_key, event: event.id, level, sequence: event.sequence, meaning };
    const isWarning = level <= severity_warning && isVehicle;
    if (isWarning && this.#isNew(`${asset_key} ${event.id}`) && this.#mayWrite(asset_key))
      this.#log.warn(facts, texts.vehicle_event);
    else this.#log.debug(facts, texts.vehicle_event);
  }

  /** A sender whose id stands for all. */
  ignored(link: string, peer: string, { sysid, compid }: Pick<Frame, 'compid' | 'sysid'>): void {
    if (this.#isNew(texts.id_of_all)) this.#log.error({ link, peer, sysid, compid }, texts.id_of_all);
  }

  /** A sender with the identity of a vehicle that is received from other hosts. */
  refused(asset_key: string, address: string): void {
    if (this.#isNew(`${texts.address_refused} ${asset_key}`))
      this.#log.warn({ asset_key, address }, texts.address_refused);
  }

  /** Whether this was not logged within the last minute. */
  #isNew(key: string): boolean {
    const now_ms = performance.now();
    if (this.#logged.has(key, now_ms)) return false;
    this.#logged.note(key, true, now_ms);
    return true;
  }

  /** Whether the vehicle may log a line in this minute; logs once when the limit is reached. */
  #mayWrite(asset_key: string): boolean {
    const verdict = this.#lines.reserve(asset_key, performance.now());
    if (verdict === 'last') {
      this.#log.warn({ asset_key }, texts.texts_suppressed);
    }
    return verdict === 'write';
  }
}

// Limits log lines by their subject: a device that sends ever new texts must not fill the journal.

const window_ms = 60_000;
/** Lines of one subject in a window. */
const subject_lines_max = 20;
/** Lines of all subjects in a window. */
const lines_max = 120;
const subjects_max = 256;

class LineBudget {
  readonly #subjects = new Map<string, number>();
  #began_ms = Number.NEGATIVE_INFINITY;
  #lines = 0;

  /** Decides whether the line may be written; `last`: the last one of its subject in this window. */
  reserve(subject: string, now_ms: number): 'write' | 'last' | 'hold' {
    if (now_ms - this.#began_ms >= window_ms) {
      this.#began_ms = now_ms;
      this.#lines = 0;
      this.#subjects.clear();
    }
    const count = (this.#subjects.get(subject) ?? 0) + 1;
    const isNew = count === 1 && this.#subjects.size >= subjects_max;
    if (isNew || this.#lines >= lines_max || count > subject_lines_max) return 'hold';
    this.#subjects.set(subject, count);
    this.#lines += 1;
    return count === subject_lines_max || this.#lines === lines_max ? 'last' : 'write';
  }
}

// Logs changes of flight mode and arming, made by the kit, a pilot or the vehicle itself.

interface FlightState {
  readonly armed: boolean;
  /** Null: the vehicle reports none. */
  readonly mode: string | null;
}

export class FlightLog {
  readonly #log: Pick<DriverLog, 'info'>;
  #known: FlightState | undefined;

  constructor(log: Pick<DriverLog, 'info'>) {
    this.#log = log;
  }

  /** Notes a heartbeat; the first one is no change. Returns the state before it. */
  note(
    state: FlightState,
    about: { readonly asset_key: string; readonly name: string },
  ): FlightState | undefined {
    const known = this.#known;
    this.#known = state;
    if (!known) return undefined;
    const { armed, mode } = state;
    if (armed !== known.armed)
      this.#log.info({ ...about, flight_mode: mode }, armed ? texts.armed : texts.disarmed);
    if (mode !== known.mode)
      this.#log.info({ ...about, flight_mode: mode, before: known.mode, armed }, texts.mode_changed);
    return known;
  }
}
