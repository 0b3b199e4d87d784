/** What the prober and its helpers offer to the driver of the links: questions sent out of one network device. */
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';

/** One thing to ask: ICMP echo, and TCP where ICMP is filtered. */
export interface ProbeTarget {
  /** IPv4 or IPv6; no name, since the resolver leaves by the default route. */
  readonly ip: string;
  /** Port of the TCP fallback. */
  readonly port: number;
}

export interface ProberSpec {
  readonly device: string;
  /** The intended interface: a device that was plugged in again has the name but another index. */
  readonly ifindex: number;
  /** As they can be asked over the link now; none: it is not probed. */
  readonly targets: () => readonly ProbeTarget[];
  /** Between two probes; the targets take turns. */
  readonly interval_ms: number;
  /** How long an answer may take. A satellite takes a second on a bad day: 3000 at least. */
  readonly timeout_ms: number;
  /** Whether TCP stands in where ICMP is not answered. */
  readonly tcp: boolean;
  /** Everything ends with it; a prober is stopped by nothing else. */
  readonly signal: AbortSignal;
  readonly log: DriverLog;
  /** Called when `reachable` of the next `read` differs from the last. */
  readonly onChange: () => void;
}

/** Results of the probes of the window. */
export interface ProbeReading {
  /** With hysteresis over all targets; null: not known yet. */
  readonly reachable: boolean | null;
  /**
   * When that state began (`performance.now()`): the first answer, or the last one before the outage. Null: not known,
   * or with this reading.
   */
  readonly since_ms: number | null;
  /** When the first probe left that was not answered, of those since the last answer. Null: none. */
  readonly silent_ms: number | null;
  /** Mean round trip of the replies; null without any. */
  readonly latency_ms: number | null;
  /** Mean difference of successive round trips. */
  readonly jitter_ms: number | null;
  readonly packet_loss_pct: number | null;
  /** What was answered or is tried. */
  readonly method: 'icmp' | 'tcp' | 'none';
  /** Why it is not reachable, or why nothing is known, for the technician. */
  readonly reason: string | null;
  readonly decided_by: 'probes' | 'checks';
  /** What the reader of the figures must know although the link is reachable. */
  readonly note: string | null;
}

export interface Prober {
  readonly read: () => ProbeReading;
}

export type StartProber = (spec: ProberSpec) => Prober;

/** Moments as the driver knows them at one reading. */
export interface Moment {
  /** `performance.now()`: never steps. */
  readonly mono_ms: number;
  /** `Date.now()`: may step. */
  readonly wall_ms: number;
  /** False while the clock is not set; left out: judged by whether the time is plausible. */
  readonly wall_trusted?: boolean;
}

/** Which run of the machine this is, and how long it has been up at `performance.now() === 0`. */
export interface Boot {
  readonly id: string;
  readonly offset_ms: number;
}

export interface AvailabilitySpec {
  /** Where the window is kept over restarts. */
  readonly file: string;
  /** Left out: asked of the kernel. */
  readonly boot?: Boot;
  /** Writes at most once a minute, and once more when it aborts. */
  readonly signal: AbortSignal;
  readonly log: DriverLog;
}

/** The state of a link since the last note of it. */
export interface NotedLink {
  readonly link: string;
  /** Null: not observed. */
  readonly reachable: boolean | null;
  readonly at: Moment;
  /** A change came at this moment, which may be before the last note; what was noted otherwise is corrected. */
  readonly since_ms?: number | undefined;
}

/** The share of the observed time with an answer, for each link, over the last 24 h. */
export interface Availability {
  readonly note: (noted: NotedLink) => void;
  /** 0 to 100; null before anything was observed. */
  readonly pct: (link: string) => number | null;
  /** Writes what changed, at once: before the daemon ends. */
  readonly flush: () => void;
  /** Resolves when no write is in progress; after the abort none begins. */
  readonly saved: () => Promise<void>;
}

export type OpenAvailability = (spec: AvailabilitySpec) => Availability;

export interface PublicAddressSpec {
  readonly device: string;
  /** STUN servers (RFC 8489), asked in turn. */
  readonly servers: readonly { readonly ip: string; readonly port: number }[];
  readonly signal: AbortSignal;
}

/** The address that servers see behind the device; null when none answers or the answer is no public address. */
export type PublicAddress = (spec: PublicAddressSpec) => Promise<string | null>;
