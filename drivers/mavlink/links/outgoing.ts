/** Sends all outgoing frames: adds our ids, the sequence number and signature of each link; sends nothing when passive. */
import type { Link } from './link.ts';
import { encode, type MessageName, type Messages } from '../wire/messages.ts';
import type { Precedence } from './send-budget.ts';
import type { SignFrame, Signing } from '../wire/signing.ts';

/** More than a router holds back. */
const recent_frames_max = 512;
const relayed_max = 64;
/** An answer to a command of a station may arrive this late. */
const relayed_answer_ms = 10_000;

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
  /** Frames that were sent last, to recognise copies that a router returns. */
  readonly #recent = new Set<string>();
  /** When stations sent commands through us, by number of the command. */
  readonly #relayed = new Map<number, number>();

  constructor({ sysid, compid, passive, signing }: OutgoingParts) {
    this.sysid = sysid;
    this.compid = compid;
    this.#passive = passive;
    this.#signing = signing;
  }

  /** Returns whether the link accepted the frame. */
  send<K extends keyof Messages>(name: K, fields: Messages[K], { link, peer }: Recipient): boolean {
    if (this.#passive) return false;
    const seq = this.#seq.get(link) ?? 0;
    this.#seq.set(link, (seq + 1) & 0xff);
    const { sysid, compid } = this;
    const bytes = encode(name, fields, { sysid, compid, seq, sign: this.#signerOf(link) });
    this.#remember(bytes);
    return link.send(bytes, peer, precedenceOf(name, fields));
  }

  /** Each link signs with a separate link id, assigned in the order of first use. */
  #signerOf(link: Link): SignFrame | undefined {
    if (!this.#signing) return undefined;
    const signer = this.#signers.get(link) ?? this.#signing.signer(this.#signers.size);
    this.#signers.set(link, signer);
    return signer;
  }

  /** Remembers that a station sent a command with this number through us. */
  relayed(command: number, now_ms: number): void {
    this.#relayed.delete(command);
    this.#relayed.set(command, now_ms);
    if (this.#relayed.size <= relayed_max) return;
    for (const oldest of this.#relayed.keys()) {
      this.#relayed.delete(oldest);
      break;
    }
  }

  /**
   * Whether an answer is addressed to us: old autopilots send 0 as a broadcast. That counts only if no station has sent the
   * same command, whose answer it may be.
   */
  isForUs({ command, target_system, target_component }: Messages['COMMAND_ACK']): boolean {
    const relayed_ms = this.#relayed.get(command);
    const isAmbiguous = relayed_ms !== undefined && performance.now() - relayed_ms < relayed_answer_ms;
    if (isAmbiguous && (target_system === 0 || target_component === 0)) return false;
    const isSystem = target_system === 0 || target_system === this.sysid;
    return isSystem && (target_component === 0 || target_component === this.compid);
  }

  /** Whether a frame with our ids was sent by us. Otherwise another station uses our ids. */
  isOurs({ bytes }: { readonly bytes: Uint8Array }): boolean {
    return this.#recent.has(Buffer.from(bytes).toString('latin1'));
  }

  #remember(bytes: Uint8Array): void {
    this.#recent.add(Buffer.from(bytes).toString('latin1'));
    if (this.#recent.size <= recent_frames_max) return;
    for (const oldest of this.#recent) {
      this.#recent.delete(oldest);
      break;
    }
  }

  /** Whether a frame has our ids: our own, returned by a router, or one of a station with the same ids. */
  isEcho({ sysid, compid }: { readonly sysid: number; readonly compid: number }): boolean {
    return sysid === this.sysid && compid === this.compid;
  }
}
