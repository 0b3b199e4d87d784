/** One autopilot as heard from one peer of one link: what it said, whether it has started anew, and what it is asked for. */
import { EventIntake } from './event-intake.ts';
import { Heard } from './heard.ts';
import { assetKeyOf } from './identity.ts';
import { autopilotOf, type Autopilot, kindOf, type Kind } from './kind.ts';
import type { Link } from './link.ts';
import type { Decoded, Messages } from './messages.ts';
import { hasOwnModes } from './modes.ts';
import type { Outgoing } from './outgoing.ts';
import type { VehicleEvent } from './px4-events.ts';
import { type StatusText, StatusTexts } from './status-text.ts';
import { type Ask, Streams, type StreamRates } from './streams.ts';

type CommandAck = Messages['COMMAND_ACK'];

export interface ContactParts {
  readonly link: Link;
  readonly peer: string;
  readonly sysid: number;
  readonly compid: number;
  readonly out: Outgoing;
  readonly rates: StreamRates;
  readonly passive: boolean;
  readonly now_ms: number;
  /** A whole text of the vehicle. */
  readonly onText: (contact: Contact, text: StatusText) => void;
  /** An event that is heard for the first time. */
  readonly onEvent: (contact: Contact, event: VehicleEvent) => void;
}

/** A clock that goes back by more than packets can overtake each other is a new start. */
const reboot_back_ms = 2_000;
/** Restarts within `flap_window_ms` that no single vehicle makes: two that share an address look like this. */
const flaps_max = 3;
const flap_window_ms = 15_000;
/** Two vehicles that share an address give new evidence of it all the time. */
const shared_evidence_ms = 75_000;
const uids_max = 8;
const acks_max = 16;
const texts_max = 20;
const modes_max = 128;
/** One vehicle beats once a second. More beats than this within `beats_window_ms` may be those of two. */
const beats_max = 7;
const beats_window_ms = 5_000;
const command_set_interval = 511;
const command_request_message = 512;

export class Contact {
  readonly link: Link;
  readonly peer: string;
  readonly sysid: number;
  readonly compid: number;
  readonly heard = new Heard();
  readonly first_ms: number;
  last_ms: number;
  autopilot: Autopilot = 'other';
  kind: Kind = 'other';
  /** Of the asset that it is, as far as it is known who it is. */
  asset_key: string;
  /** Rises with each new start of the autopilot. */
  boots = 0;
  /** Newest last. */
  readonly acks: { readonly ack: CommandAck; readonly at_ms: number }[] = [];
  readonly texts: { readonly text: StatusText; readonly at_ms: number }[] = [];
  /** Names of its flight modes by number, as far as it has listed them. */
  readonly modes = new Map<number, string>();
  readonly events = new EventIntake();
  readonly #out: Outgoing;
  readonly #onEvent: ContactParts['onEvent'];
  readonly #onText: ContactParts['onText'];
  readonly #statusTexts = new StatusTexts();
  readonly #rates: StreamRates;
  readonly #passive: boolean;
  #streams: Streams | undefined;
  #boot_ms: number | undefined;
  #uptime_ms = 0;
  #restarts_ms: readonly number[] = [];
  /** Identities that were heard from this address before the present one. */
  readonly #earlier_uids = new Set<string>();
  #shared_ms = Number.NEGATIVE_INFINITY;
  #uid: string | undefined;
  #uid_boots = 0;
  #uid_ms = Number.NEGATIVE_INFINITY;
  #beats_ms: readonly number[] = [];

  constructor({ link, peer, sysid, compid, out, rates, passive, now_ms, onText, onEvent }: ContactParts) {
    this.link = link;
    this.peer = peer;
    this.sysid = sysid;
    this.compid = compid;
    this.asset_key = assetKeyOf({ uid: undefined, sysid, compid });
    this.first_ms = now_ms;
    this.last_ms = now_ms;
    this.#out = out;
    this.#rates = rates;
    this.#passive = passive;
    this.#onText = onText;
    this.#onEvent = onEvent;
  }

  /** Identity of the hardware, once it has told. */
  get uid(): string | undefined {
    return this.#uid;
  }

  /** When the autopilot was started, on our clock; undefined until it has told. */
  get booted_at_ms(): number | undefined {
    return this.#boot_ms;
  }

  /** Two vehicles with one system id speak from this address, and nobody can tell which of them says what. */
  isShared(now_ms: number): boolean {
    return now_ms - this.#shared_ms < shared_evidence_ms;
  }

  send<K extends keyof Messages>(name: K, fields: Messages[K]): void {
    this.#out.send(name, fields, this);
  }

  take(message: Decoded, now_ms: number): void {
    this.last_ms = now_ms;
    this.#noticeRestart(message, now_ms);
    this.heard.put(message, now_ms);
    this.#streams?.heard(message.name, now_ms);
    const { name, fields } = message;
    if (name === 'HEARTBEAT') this.#beat(fields, now_ms);
    else if (name === 'COMMAND_ACK') this.#acknowledge(fields, now_ms);
    else if (name === 'STATUSTEXT') this.#tell(this.#statusTexts.take(fields, now_ms), now_ms);
    else if (name === 'AUTOPILOT_VERSION') this.#identify(uidOf(fields), now_ms);
    else this.#list(message);
  }

  tick(now_ms: number): void {
    for (const text of this.#statusTexts.overdue(now_ms)) this.#tell(text, now_ms);
    const ask = this.#passive ? undefined : this.#streams?.next(now_ms);
    if (ask) this.#ask(ask);
    const missed = this.#passive ? undefined : this.events.next(now_ms);
    if (missed) {
      this.send('REQUEST_EVENT', {
        ...missed,
        target_system: this.sysid,
        target_component: this.compid,
      });
    }
  }

  /** What the autopilot tells piece by piece. */
  #list({ name, fields }: Decoded): void {
    if (name === 'AVAILABLE_MODES') {
      const { custom_mode, mode_name } = fields;
      if (mode_name !== '' && this.modes.size < modes_max) this.modes.set(custom_mode, mode_name);
    } else if (name === 'CURRENT_EVENT_SEQUENCE') {
      this.events.current(fields);
    } else if (name === 'RESPONSE_EVENT_ERROR') {
      this.events.gone(fields.sequence_oldest_available);
    } else if (name === 'EVENT' && this.events.take(fields)) {
      this.#onEvent(this, fields);
    }
  }

  #beat(heartbeat: Messages['HEARTBEAT'], now_ms: number): void {
    const { type, autopilot } = heartbeat;
    const found = autopilotOf({ type, autopilot });
    // Type 0 is what an autopilot says of itself while it starts.
    if (type !== 0) this.kind = kindOf(type);
    if (!this.#streams || found !== this.autopilot) this.#streams = new Streams(found, this.#rates, now_ms);
    this.autopilot = found;
    if (hasOwnModes(found, this.kind, heartbeat)) this.#streams.wantModes();
    this.#beats_ms = [...this.#beats_ms.filter((at_ms) => now_ms - at_ms < beats_window_ms), now_ms];
    if (this.#beats_ms.length > beats_max) this.#streams.doubt(now_ms);
  }

  #acknowledge(ack: CommandAck, now_ms: number): void {
    if (!this.#out.isForUs(ack)) return;
    if (ack.command === command_set_interval || ack.command === command_request_message) {
      this.#streams?.acknowledged(ack.command, ack.result);
      return;
    }
    this.acks.push({ ack, at_ms: now_ms });
    if (this.acks.length > acks_max) this.acks.shift();
  }

  #tell(text: StatusText | undefined, now_ms: number): void {
    if (!text) return;
    this.texts.push({ text, at_ms: now_ms });
    if (this.texts.length > texts_max) this.texts.shift();
    this.#onText(this, text);
  }

  /** Another identity without a new start means that there are two; so does one that was replaced and comes back. */
  #identify(uid: string | undefined, now_ms: number): void {
    if (uid === undefined) return;
    if (this.uid !== undefined && this.uid !== uid) {
      const is_replaced = this.boots !== this.#uid_boots || now_ms - this.#uid_ms > shared_evidence_ms;
      if (!is_replaced || this.#earlier_uids.has(uid) || this.#earlier_uids.size >= uids_max) {
        this.#shared_ms = now_ms;
        return;
      }
      this.#earlier_uids.add(this.uid);
    }
    this.#uid = uid;
    this.asset_key = assetKeyOf(this);
    this.#uid_boots = this.boots;
    this.#uid_ms = now_ms;
  }

  #noticeRestart(message: Decoded, now_ms: number): void {
    const boot_ms = timeSinceBoot(message);
    if (boot_ms === undefined) return;
    const booted_at_ms = now_ms - boot_ms;
    if (
      this.#boot_ms !== undefined &&
      booted_at_ms - this.#boot_ms > reboot_back_ms &&
      boot_ms < this.#uptime_ms
    ) {
      this.#restart(now_ms);
    }
    this.#boot_ms = booted_at_ms;
    this.#uptime_ms = boot_ms;
  }

  #restart(now_ms: number): void {
    this.boots += 1;
    this.#restarts_ms = [...this.#restarts_ms.filter((at_ms) => now_ms - at_ms < flap_window_ms), now_ms];
    if (this.#restarts_ms.length >= flaps_max) this.#shared_ms = now_ms;
    this.heard.forget();
    this.modes.clear();
    this.events.restart();
    this.#streams?.restart(now_ms);
  }

  #ask(ask: Ask): void {
    const target = { target_system: this.sysid, target_component: this.compid };
    if (ask.command === 'data_streams') {
      for (const req_stream_id of legacy_streams) {
        this.send('REQUEST_DATA_STREAM', {
          ...target,
          req_stream_id,
          req_message_rate: ask.rate_hz,
          start_stop: 1,
        });
      }
      return;
    }
    const param2 = ask.command === command_set_interval ? ask.interval_us : 0;
    const rest = { param3: 0, param4: 0, param5: 0, param6: 0, param7: 0 };
    this.send('COMMAND_LONG', {
      ...target,
      command: ask.command,
      confirmation: 0,
      param1: ask.msgid,
      param2,
      ...rest,
    });
  }
}

/** Extended status, position, attitude, VFR_HUD, estimator and battery. */
const legacy_streams = [2, 6, 10, 11, 12] as const;

/** Milliseconds since the autopilot was started; undefined for messages without such a clock. */
function timeSinceBoot({ name, fields }: Decoded): number | undefined {
  const is_clocked = name === 'GLOBAL_POSITION_INT' || name === 'ATTITUDE' || name === 'SYSTEM_TIME';
  return is_clocked ? fields.time_boot_ms : undefined;
}

/** The same number in every simulated PX4. */
const px4_simulator_uid = '4954414c44494e4f';

/** Undefined when the autopilot has no identity: software in the loop, old boards. */
function uidOf({ uid, uid2 }: Messages['AUTOPILOT_VERSION']): string | undefined {
  if (uid2.some((byte) => byte !== 0)) return Buffer.from(uid2).toString('hex');
  return /^0*$/u.test(uid) || uid === px4_simulator_uid ? undefined : uid;
}
