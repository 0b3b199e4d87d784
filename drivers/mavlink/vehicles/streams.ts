/** Requests the messages that feeds and commands need from one autopilot, again when they stop. */
import type { MavlinkOptions } from '../options.ts';
import type { Autopilot } from '../reports/kind.ts';
import { blank, type Messages } from '../wire/messages.ts';

type StreamRates = MavlinkOptions['streams'];

/** A request to send. */
export type StreamRequest =
  /** `MAV_CMD_SET_MESSAGE_INTERVAL`. */
  | { readonly command: 511; readonly msgid: number; readonly interval_us: number }
  /** `MAV_CMD_REQUEST_MESSAGE`. */
  | { readonly command: 512; readonly msgid: number }
  /** `MAV_CMD_REQUEST_AUTOPILOT_CAPABILITIES`, for autopilots that do not support 512. */
  | { readonly command: 520 }
  /** `MAV_CMD_GET_HOME_POSITION`, for those that do not support 511: home is in no stream (ArduPilot#4503). */
  | { readonly command: 410 }
  /** `REQUEST_DATA_STREAM`, for autopilots that do not support 511. */
  | { readonly command: 'data_streams'; readonly rates: StreamRates };

interface Wanted {
  readonly name: keyof Messages;
  readonly msgid: number;
  /** Absent: requested by id at intervals, to detect a second vehicle that answers. */
  readonly interval_ms?: number;
  /** Requested until it was received once. */
  readonly once?: true;
  /** Requested only after what feeds and commands need. */
  readonly late?: true;
}

interface Want {
  readonly wanted: Wanted;
  received_ms: number;
  asked_ms: number;
  asks: number;
  /** Times received since the start of the observation. */
  count: number;
  /** Its rate was requested: another station that lowers it later wins. */
  raised: boolean;
  /** The autopilot has no such message; not requested again until it restarts. */
  refused: boolean;
}

interface InFlight {
  readonly want: Want;
  readonly ask: StreamRequest;
  sent_ms: number;
  tries: number;
}

const answer_wait_ms = 1_000;
const answer_tries_max = 3;
/** Commands wait for the effect that a message shows, with limits of a few seconds: it comes at least this often. */
const effect_interval_ms = 1_000;
/** Preconditions of commands need what is at most 5 s old, also when a message is lost. */
const health_interval_ms = 2_000;
/** After this many unanswered requests an ArduPilot is assumed to support only REQUEST_DATA_STREAM. */
const unanswered_max = 3;
/** So many requests in a row are lost to no link over which a vehicle stays online. */
const ignored_min = 8;
/** Time to observe which messages a vehicle sends without requests. */
const observe_ms = 1_000;
const absent_min_ms = 3_000;
const absent_intervals = 3;
/** Pauses between requests: an autopilot may accept and have nothing to send, and another station may set another rate. */
const pauses_ms = [5_000, 10_000, 30_000, 120_000] as const;
/** Without its identity a vehicle has no key: it is requested each second so many times. */
const identity_asks_soon = 8;
const identity_pause_ms = 10_000;
/** Time to measure the rates of messages that a vehicle sends without requests. */
const measure_ms = 8_000;
/** A message at less than this share of the wanted rate is requested. */
const rate_share_min = 0.7;
const identity_every_ms = 30_000;
const recheck_every_ms = 5_000;
const once_asks_max = 3;
const late_ms = 3_000;
const result_accepted = 0;
const result_temporarily_rejected = 1;
const result_unsupported = 3;
const result_in_progress = 5;
const command_set_interval = 511;
const command_request_capabilities = 520;
const home = 'HOME_POSITION';

/** A PX4 has eight external modes. */
const lists_max = 16;
const available_modes: Wanted = { name: 'AVAILABLE_MODES', msgid: 435, once: true };

/** What is requested once, when it is needed. */
const on_demand = {
  /** Where the metadata of the events is: PX4 from 1.14, and before. */
  metadata: [
    { name: 'COMPONENT_METADATA', msgid: 397, once: true },
    { name: 'COMPONENT_INFORMATION', msgid: 395, once: true },
  ],
  /** Which cameras the autopilot answers for, and then their streams: ArduPilot from 4.4. Others refuse it. */
  cameras: [{ name: 'CAMERA_INFORMATION', msgid: 259, once: true, late: true }],
  camera_streams: [{ name: 'VIDEO_STREAM_INFORMATION', msgid: 269, once: true, late: true }],
  /** When the flight began: PX4, and ArduPilot from 4.6 (ArduPilot#25489). */
  flight: [{ name: 'FLIGHT_INFORMATION', msgid: 264, once: true, late: true }],
} as const satisfies Record<string, readonly Wanted[]>;

/** What only some commands need, and is requested for them. */
const reports = {
  /** Sent while the vehicle orbits. */
  circle: { name: 'ORBIT_EXECUTION_STATUS', msgid: 360, interval_ms: effect_interval_ms, once: true },
  /** The sticks of the pilot's transmitter. */
  sticks: { name: 'RC_CHANNELS', msgid: 65, interval_ms: effect_interval_ms, once: true },
  /** Direction and distance of the target, also while the vehicle avoids an obstacle on its way. */
  way: { name: 'NAV_CONTROLLER_OUTPUT', msgid: 62, interval_ms: effect_interval_ms, once: true },
} as const satisfies Record<string, Wanted>;

export function wantedMessages(autopilot: Autopilot, rates: StreamRates): readonly Wanted[] {
  const hud_ms = 1_000 / rates.position_hz;
  const position_ms = Math.min(effect_interval_ms, hud_ms);
  const attitude_ms = Math.min(effect_interval_ms, 1_000 / rates.attitude_hz);
  const status_ms = 1_000 / rates.status_hz;
  const effect_ms = Math.min(effect_interval_ms, status_ms);
  const health_ms = Math.min(health_interval_ms, status_ms);
  const estimator =
    autopilot === 'px4'
      ? ({ name: 'ESTIMATOR_STATUS', msgid: 230 } as const)
      : ({ name: 'EKF_STATUS_REPORT', msgid: 193 } as const);
  return [
    { name: 'AUTOPILOT_VERSION', msgid: 148 },
    { name: 'GLOBAL_POSITION_INT', msgid: 33, interval_ms: position_ms },
    { name: 'GPS_RAW_INT', msgid: 24, interval_ms: health_ms },
    { name: home, msgid: 242, interval_ms: 5_000 },
    { ...estimator, interval_ms: health_ms },
    { name: 'SYS_STATUS', msgid: 1, interval_ms: health_ms },
    { name: 'EXTENDED_SYS_STATE', msgid: 245, interval_ms: effect_ms },
    { name: 'ATTITUDE', msgid: 30, interval_ms: attitude_ms },
    { name: 'VFR_HUD', msgid: 74, interval_ms: hud_ms },
    { name: 'BATTERY_STATUS', msgid: 147, interval_ms: 2 * status_ms },
    { name: 'POSITION_TARGET_GLOBAL_INT', msgid: 87, interval_ms: effect_interval_ms },
    ...(autopilot === 'px4'
      ? ([{ name: 'WIND_COV', msgid: 231, interval_ms: 4 * status_ms }] as const)
      : ([
          { name: 'WIND', msgid: 168, interval_ms: 4 * status_ms },
          { name: 'FENCE_STATUS', msgid: 162, interval_ms: 4 * status_ms },
        ] as const)),
    { name: 'VIBRATION', msgid: 241, interval_ms: 4 * status_ms },
    { name: 'MISSION_CURRENT', msgid: 42, interval_ms: effect_ms },
    // Many vehicles have neither.
    { name: 'GPS2_RAW', msgid: 124, interval_ms: health_ms, once: true },
    { name: 'RC_CHANNELS', msgid: 65, interval_ms: 4 * status_ms, once: true },
    autopilot === 'px4'
      ? { name: 'ALTITUDE', msgid: 141, interval_ms: 4 * status_ms, once: true }
      : { name: 'TERRAIN_REPORT', msgid: 136, interval_ms: 4 * status_ms, once: true },
  ];
}

/** Sends one request at a time, because the acknowledgement does not name the requested message. */
export class Streams {
  readonly #autopilot: Autopilot;
  readonly #rates: StreamRates;
  /** By message name. */
  readonly #wants = new Map<keyof Messages, Want>();
  #begun_ms: number;
  #in_flight: InFlight | undefined;
  #unanswered = 0;
  /** The same in a row, and in the time of each the vehicle was received. */
  #ignored = 0;
  /** `bridge`: it reports its identity, and acknowledges no request. */
  #answers: 'acknowledged' | 'bridge' | undefined;
  #heard_ms = Number.NEGATIVE_INFINITY;
  /** It refused SET_MESSAGE_INTERVAL as unsupported: ArduPilot before 4.0. */
  #has_no_intervals = false;
  /** It refused REQUEST_MESSAGE for its identity. */
  #identity: 'requested' | 'capabilities' | 'none' = 'requested';
  /** The flight modes for which the list of all was requested. */
  readonly #listed_for = new Set<number>();
  /** No request is due before this time. */
  #next_check_ms = Number.NEGATIVE_INFINITY;

  constructor(autopilot: Autopilot, rates: StreamRates, now_ms: number) {
    this.#autopilot = autopilot;
    this.#rates = rates;
    this.#begun_ms = now_ms;
    this.restart(now_ms);
  }

  /** Starts over after a restart of the autopilot, which loses every request. */
  restart(now_ms: number): void {
    this.#begun_ms = now_ms;
    this.#in_flight = undefined;
    this.#unanswered = 0;
    this.#ignored = 0;
    this.#has_no_intervals = false;
    this.#identity = 'requested';
    this.#wants.clear();
    this.#listed_for.clear();
    for (const wanted of wantedMessages(this.#autopilot, this.#rates)) this.#want(wanted);
  }

  /**
   * Requests the list of flight modes for one of them. It is long, and most vehicles have only modes that are in the tables; external
   * modes of PX4 come later.
   */
  requestModes(custom_mode: number): void {
    if (this.#listed_for.has(custom_mode) || this.#listed_for.size >= lists_max) return;
    this.#listed_for.add(custom_mode);
    this.#want(available_modes);
  }

  request(what: keyof typeof on_demand): void {
    for (const wanted of on_demand[what]) if (!this.#wants.has(wanted.name)) this.#want(wanted);
  }

  /** Requests what will show the effect of a command. */
  requestReport(report: keyof typeof reports): void {
    const wanted = reports[report];
    const known = this.#wants.get(wanted.name)?.wanted.interval_ms ?? Number.POSITIVE_INFINITY;
    if (known > wanted.interval_ms) this.#want(wanted);
  }

  /** Whether the autopilot has refused to report its identity. */
  get hasNoIdentity(): boolean {
    return this.#identity === 'none';
  }

  /** Whether the vehicle is received and answers nothing; both autopilots answer each request. */
  get isIgnored(): boolean {
    return this.#ignored >= ignored_min && this.#autopilot !== 'other' && this.#answers !== 'bridge';
  }

  received(name: keyof Messages, now_ms: number): void {
    this.#heard_ms = now_ms;
    if (name === 'AUTOPILOT_VERSION') this.#answers ??= 'bridge';
    if (name === 'CAMERA_INFORMATION') this.request('camera_streams');
    const want = this.#wants.get(name);
    if (!want) return;
    want.received_ms = now_ms;
    want.count += 1;
    if (want.asks === 0) return;
    want.asks = 0;
    this.#next_check_ms = now_ms;
  }

  /** Requests the identity again immediately, since there may be a second vehicle. */
  recheckIdentity(now_ms: number): void {
    const want = this.#wants.get('AUTOPILOT_VERSION');
    if (want && now_ms - want.asked_ms >= recheck_every_ms) this.requestIdentity(now_ms);
  }

  requestIdentity(now_ms: number): void {
    const want = this.#wants.get('AUTOPILOT_VERSION');
    if (!want) return;
    want.received_ms = Number.NEGATIVE_INFINITY;
    want.asks = 0;
    this.#next_check_ms = now_ms;
  }

  /** `COMMAND_ACK` for 511, 512 or 520. */
  acknowledged(command: number, result: number): void {
    this.#ignored = 0;
    this.#answers = 'acknowledged';
    const in_flight = this.#in_flight;
    if (!in_flight || in_flight.ask.command !== command || result === result_in_progress) return;
    this.#unanswered = 0;
    this.#in_flight = undefined;
    if (result === result_accepted || result === result_temporarily_rejected) return;
    const { want } = in_flight;
    if (want.wanted.name === 'AUTOPILOT_VERSION') this.#identityRefused(want, command);
    else if (command === 511 && result === result_unsupported && this.#autopilot === 'ardupilot')
      this.#has_no_intervals = true;
    else want.refused = true;
  }

  /** Firmware without 512 has another command for it; after that it has no identity. */
  #identityRefused(want: Want, command: number): void {
    const isOlder = command === command_request_capabilities;
    if (isOlder && this.#identity === 'requested') return;
    if (isOlder) {
      want.refused = true;
      this.#identity = 'none';
    } else {
      this.#identity = 'capabilities';
      want.asks = 0;
      this.#next_check_ms = Number.NEGATIVE_INFINITY;
    }
  }

  /** Returns the request to send now, if any. */
  next(now_ms: number): StreamRequest | undefined {
    if (this.#in_flight) {
      if (now_ms - this.#in_flight.sent_ms < answer_wait_ms) return undefined;
      const again = this.#again(this.#in_flight, now_ms);
      if (again) return again;
    }
    const want = now_ms < this.#next_check_ms ? undefined : this.#due(now_ms);
    if (!want) return undefined;
    want.asked_ms = now_ms;
    want.asks += 1;
    want.raised = true;
    return isStreamed(want) && !this.#hasIntervals ? this.#askForAll(now_ms) : this.#ask(want, now_ms);
  }

  /** Returns an unanswered request to send once more; undefined when it is given up. */
  #again(in_flight: InFlight, now_ms: number): StreamRequest | undefined {
    const tries_max = in_flight.want.wanted.name === 'AUTOPILOT_VERSION' ? 1 : answer_tries_max;
    if (in_flight.tries < tries_max && now_ms >= presentUntil_ms(in_flight.want)) {
      in_flight.tries += 1;
      in_flight.sent_ms = now_ms;
      return in_flight.ask;
    }
    this.#in_flight = undefined;
    this.#unanswered += 1;
    if (this.#heard_ms > in_flight.sent_ms) this.#ignored += 1;
    return undefined;
  }

  /** Whether SET_MESSAGE_INTERVAL is of use: only ArduPilot has an older request. */
  get #hasIntervals(): boolean {
    if (this.#autopilot !== 'ardupilot') return true;
    return !this.#has_no_intervals && this.#unanswered < unanswered_max;
  }

  #ask(want: Want, now_ms: number): StreamRequest {
    const ask = this.#askFor(want);
    this.#in_flight = { want, ask, sent_ms: now_ms, tries: 1 };
    return ask;
  }

  /** One request covers all streams, so that none of them is due now. */
  #askForAll(now_ms: number): StreamRequest {
    for (const want of this.#wants.values()) {
      if (!isStreamed(want)) continue;
      want.asked_ms = now_ms;
      want.asks = Math.max(1, want.asks);
      want.raised = true;
    }
    return { command: 'data_streams', rates: this.#rates };
  }

  #want(wanted: Wanted): void {
    const never_ms = Number.NEGATIVE_INFINITY;
    this.#wants.set(wanted.name, {
      wanted,
      received_ms: never_ms,
      asked_ms: never_ms,
      asks: 0,
      count: 0,
      raised: false,
      refused: false,
    });
    this.#next_check_ms = never_ms;
  }

  /** Returns the first due message; without one, sets the time of the next check. */
  #due(now_ms: number): Want | undefined {
    let next_ms = Number.POSITIVE_INFINITY;
    for (const want of this.#wants.values()) {
      const due_ms = this.#dueAt_ms(want);
      if (now_ms >= due_ms) return want;
      next_ms = Math.min(next_ms, due_ms);
    }
    this.#next_check_ms = next_ms;
    return undefined;
  }

  #askFor({ wanted: { name, msgid, interval_ms }, asks }: Want): StreamRequest {
    // Bridges know the older request alone, and answer none with a COMMAND_ACK (RosettaDrone's MAVLinkReceiver.java).
    const isOlderDue = this.#identity === 'capabilities' || (asks > unanswered_max && asks % 2 === 0);
    if (name === 'AUTOPILOT_VERSION' && isOlderDue) return { command: command_request_capabilities };
    if (name === home && !this.#hasIntervals) return { command: 410 };
    if (interval_ms === undefined) return { command: 512, msgid };
    return { command: 511, msgid, interval_us: Math.round(interval_ms * 1_000) };
  }

  #dueAt_ms(want: Want): number {
    if (want.refused) return Number.POSITIVE_INFINITY;
    const { interval_ms, late } = want.wanted;
    const observe_until_ms =
      interval_ms === undefined && !late ? 0 : this.#begun_ms + (late ? late_ms : observe_ms);
    const pause_ms = pauseAfter_ms(want);
    const slow_ms = want.raised ? Number.POSITIVE_INFINITY : this.#begun_ms + measure_ms;
    const due_ms = Math.min(presentUntil_ms(want), isSlow(want) ? slow_ms : Number.POSITIVE_INFINITY);
    return Math.max(due_ms, observe_until_ms, want.asks === 0 ? 0 : want.asked_ms + pause_ms);
  }
}

/** Whether it is in a stream that REQUEST_DATA_STREAM starts. */
function isStreamed({ wanted: { name, interval_ms } }: Want): boolean {
  return interval_ms !== undefined && name !== home;
}

/** Whether a message has arrived at less than the wanted rate while its rate was measured. */
function isSlow({ count, received_ms, wanted: { interval_ms } }: Want): boolean {
  if (interval_ms === undefined || received_ms === Number.NEGATIVE_INFINITY) return false;
  return count < (rate_share_min * measure_ms) / interval_ms;
}

function pauseAfter_ms({ asks, received_ms, wanted: { name } }: Want): number {
  const isUnknown = name === 'AUTOPILOT_VERSION' && received_ms === Number.NEGATIVE_INFINITY;
  if (isUnknown) return asks <= identity_asks_soon ? answer_wait_ms : identity_pause_ms;
  return pauses_ms[Math.min(asks, pauses_ms.length) - 1] ?? 0;
}

/** Returns until when a message counts as present, at any rate: another station may have set that rate, and two must not compete. */
function presentUntil_ms({ received_ms, asks, wanted: { interval_ms, once } }: Want): number {
  const never = Number.POSITIVE_INFINITY;
  if (once) return asks > once_asks_max || received_ms !== Number.NEGATIVE_INFINITY ? never : 0;
  if (interval_ms === undefined) return received_ms + identity_every_ms;
  return received_ms + Math.max(absent_min_ms, absent_intervals * interval_ms);
}

interface Asked {
  readonly target: { readonly target_system: number; readonly target_component: number };
  send<K extends keyof Messages>(name: K, fields: Messages[K]): boolean;
}

/** Sends a request to an autopilot. */
export function sendRequest(request: StreamRequest, asked: Asked): void {
  const { target } = asked;
  if (request.command === 'data_streams') {
    for (const [req_stream_id, rate] of legacy_streams) {
      const req_message_rate = Math.max(1, Math.round(request.rates[rate]));
      asked.send('REQUEST_DATA_STREAM', { ...target, req_stream_id, req_message_rate, start_stop: 1 });
    }
    return;
  }
  const { command } = request;
  const param1 = 'msgid' in request ? request.msgid : 1;
  const param2 = command === command_set_interval ? request.interval_us : 0;
  asked.send('COMMAND_LONG', { ...blank('COMMAND_LONG'), ...target, command, param1, param2 });
}

/** Extended status, transmitter, position, attitude, VFR_HUD, estimator and battery, with the rate of each. */
const legacy_streams = [
  [2, 'status_hz'],
  [3, 'status_hz'],
  [6, 'position_hz'],
  [10, 'attitude_hz'],
  [11, 'position_hz'],
  [12, 'status_hz'],
] as const;
