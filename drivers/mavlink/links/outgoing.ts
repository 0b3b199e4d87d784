/** Sends all outgoing frames: adds our ids, the sequence number and signature of each link; sends nothing when passive. */
import { randomInt } from 'node:crypto';
import { SeenRecently } from '../../../src/platform/seen-recently.ts';
import type { Link } from './link.ts';
import type { MavlinkVersion } from '../wire/frame.ts';
import {
  blank,
  type Decoded,
  encode,
  isInMavlink1,
  type MessageName,
  type Messages,
} from '../wire/messages.ts';
import type { Precedence } from './send-budget.ts';
import type { SignFrame, Signing } from '../wire/signing.ts';
import { every } from '../../../src/platform/time.ts';
import type { MavlinkOptions } from '../options.ts';

/** More than a router holds back. */
const recent_frames_max = 512;
/** A router returns a frame within this time. Another station with our ids sends the same heartbeats, but not at the same time. */
const returned_ms = 5_000;
const sequence_numbers = 256;
const foreign_max = 64;
/** An answer to a command of a station may arrive this late. */
const foreign_answer_ms = 10_000;
/** An answer to a command of this kit arrives within this time, also over a satellite. */
export const late_answer_max_ms = 200_000;

const commanding: ReadonlySet<MessageName> = new Set([
  'COMMAND_INT',
  'COMMAND_LONG',
  'MISSION_SET_CURRENT',
  'SET_MODE',
  'SET_POSITION_TARGET_GLOBAL_INT',
]);
/** Requests for messages, which are commands on the wire only. */
const requests: ReadonlySet<unknown> = new Set([511, 512, 520]);

/** A command has precedence on a link with a budget. */
function precedenceOf(name: MessageName, fields: Messages[MessageName]): Precedence {
  const isRequest = 'command' in fields && requests.has(fields.command);
  return commanding.has(name) && !isRequest ? 'command' : 'usual';
}

export interface Recipient {
  readonly link: Link;
  /** Every peer of the link when omitted. */
  readonly peer?: string;
  /** MAVLink version in which it is addressed; 2 when omitted. */
  readonly version?: MavlinkVersion;
}

export interface OutgoingParts {
  readonly sysid: number;
  readonly compid: number;
  readonly passive: boolean;
  readonly signing: Signing | undefined;
}

export class Outgoing {
  readonly sysid: number;
  readonly compid: number;
  readonly #passive: boolean;
  readonly #signing: Signing | undefined;
  /** Next sequence number of each link: receivers count gaps as losses. */
  readonly #seq = new Map<Link, number>();
  readonly #signers = new Map<Link, SignFrame>();
  /** The last frames that were sent, to recognise copies that a router returns. */
  readonly #recent = new SeenRecently<string>({ keep_ms: returned_ms, max: recent_frames_max });
  /** Commands that other stations sent, through us or over the same net, by their number. */
  readonly #foreign = new SeenRecently<number>({ keep_ms: foreign_answer_ms, max: foreign_max });
  /** When we sent commands, by number of the command. */
  readonly #sent = new Map<number, number>();
  readonly #began_ms = performance.now();

  constructor({ sysid, compid, passive, signing }: OutgoingParts) {
    this.sysid = sysid;
    this.compid = compid;
    this.#passive = passive;
    this.#signing = signing;
  }

  /** Returns whether the link accepted the frame. A message that does not exist in the recipient's version is not sent. */
  send<K extends keyof Messages>(
    name: K,
    fields: Messages[K],
    { link, peer, version = 2 }: Recipient,
  ): boolean {
    if (this.#passive || (version === 1 && !isInMavlink1(name))) return false;
    // Two kits that start together would number their frames alike.
    const seq = this.#seq.get(link) ?? randomInt(sequence_numbers);
    this.#seq.set(link, (seq + 1) % sequence_numbers);
    const { sysid, compid } = this;
    const bytes = encode(name, fields, { sysid, compid, seq, version, sign: this.#signerOf(link) });
    this.#recent.note(Buffer.from(bytes).toString('latin1'), true, performance.now());
    if ('command' in fields && typeof fields.command === 'number')
      this.#sent.set(fields.command, performance.now());
    return link.send(bytes, peer, precedenceOf(name, fields));
  }

  /** Each link signs with a separate link id, assigned in the order of first use. */
  #signerOf(link: Link): SignFrame | undefined {
    if (!this.#signing) return undefined;
    const signer = this.#signers.get(link) ?? this.#signing.signer(this.#signers.size);
    this.#signers.set(link, signer);
    return signer;
  }

  /** Remembers that another station sent a command with this number. */
  foreign(command: number, now_ms: number): void {
    this.#foreign.note(command, true, now_ms);
  }

  /** Notes a command of another station that arrives over a link. */
  observe({ name, fields }: Decoded, now_ms: number): void {
    if (name === 'COMMAND_LONG' || name === 'COMMAND_INT') this.foreign(fields.command, now_ms);
  }

  /** Whether an answer is addressed to us alone, to a command that we have not sent: another station uses our ids. */
  isUnexpected(
    { command, target_system, target_component }: Messages['COMMAND_ACK'],
    now_ms: number,
  ): boolean {
    if (target_system !== this.sysid || target_component !== this.compid) return false;
    // The first answers may be to commands of an earlier run.
    if (now_ms - this.#began_ms < late_answer_max_ms) return false;
    return now_ms - (this.#sent.get(command) ?? Number.NEGATIVE_INFINITY) > late_answer_max_ms;
  }

  /**
   * Whether an answer is addressed to us: old autopilots send 0 as a broadcast. That counts only if no station has sent the
   * same command, whose answer it may be.
   */
  isForUs({ command, target_system, target_component }: Messages['COMMAND_ACK']): boolean {
    const isAmbiguous = this.#foreign.has(command, performance.now());
    if (isAmbiguous && (target_system === 0 || target_component === 0)) return false;
    const isSystem = target_system === 0 || target_system === this.sysid;
    return isSystem && (target_component === 0 || target_component === this.compid);
  }

  /** Whether a frame with our ids was sent by us. Otherwise another station uses our ids. */
  isOurs({ bytes }: { readonly bytes: Uint8Array }, now_ms: number): boolean {
    return this.#recent.has(Buffer.from(bytes).toString('latin1'), now_ms);
  }

  /** Whether a frame has our ids: our own, returned by a router, or one of a station with the same ids. */
  isEcho({ sysid, compid }: { readonly sysid: number; readonly compid: number }): boolean {
    return sysid === this.sysid && compid === this.compid;
  }
}

// Sends our heartbeat: 1 Hz on every link, only while this process runs on time.

const beat_ms = 1_000;
/** After a stall of this length one heartbeat is skipped: autopilots may rely on its sender. */
const late_max_ms = 2_000;
const type_ground_station = 6;
const type_onboard_controller = 18;
const autopilot_none = 8;
const state_active = 4;
const mavlink_version = 3;

/** Sends heartbeats until `signal` aborts, but not over satellites. */
export function sendHeartbeats(
  links: readonly Link[],
  {
    out,
    role,
    signal,
  }: { readonly out: Outgoing; readonly role: MavlinkOptions['role']; readonly signal: AbortSignal },
): void {
  const type = role === 'ground_station' ? type_ground_station : type_onboard_controller;
  const about = { type, autopilot: autopilot_none, system_status: state_active, mavlink_version };
  const heartbeat = { ...blank('HEARTBEAT'), ...about };
  let last_ms = performance.now();
  every(beat_ms, signal, () => {
    const now_ms = performance.now();
    const is_on_time = now_ms - last_ms < late_max_ms;
    last_ms = now_ms;
    if (!is_on_time) return;
    for (const link of links) if (!link.high_latency) out.send('HEARTBEAT', heartbeat, { link });
  });
}
