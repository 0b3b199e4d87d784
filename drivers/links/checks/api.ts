/** What the checks of a link offer to the driver: questions whose answers are known beforehand, asked over one network device. */
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';
import type { Family } from '../../../src/platform/linux/socket-address.ts';

/** One GET: what answers instead of the server is not the internet. */
export interface HttpCheck {
  readonly kind: 'http';
  readonly url: URL;
  /** Address of the server; null: `resolver` is asked for it, over the link. */
  readonly ip: string | null;
  readonly resolver: string | null;
  readonly status: number;
  /** Text that the answer contains. */
  readonly body: string | null;
}

/** One question for the addresses of a name. */
export interface DnsCheck {
  readonly kind: 'dns';
  readonly server: string;
  readonly name: string;
  /** Addresses of which at least one must be in the answer; empty: any address that others can reach. */
  readonly addresses: readonly string[];
}

export type Check = HttpCheck | DnsCheck;

/** Null: passed. Else why not, for the technician. */
export type CheckOutcome = string | null;

export interface CheckWay {
  /** Interface name. */
  readonly device: string;
  /** In which packets leave by it: of a name the addresses of these are asked for. */
  readonly families: readonly Family[];
  readonly timeout_ms: number;
  readonly signal: AbortSignal;
}

export interface CheckerSpec {
  readonly device: string;
  /** As they can be asked over the link now, and its families; no check: no verdict. */
  readonly ways: () => { readonly checks: readonly Check[]; readonly families: readonly Family[] };
  /** Between two rounds while they pass. */
  readonly interval_ms: number;
  readonly timeout_ms: number;
  readonly signal: AbortSignal;
  readonly log: DriverLog;
  /** Called when `passed` of the next `read` differs from the last. */
  readonly onChange: () => void;
}

/** What the rounds add up to. Moments are `performance.now()`. */
export interface CheckReading {
  /** Null: no verdict yet. */
  readonly passed: boolean | null;
  /** When the newest round that passed began; null: none has. */
  readonly passed_ms: number | null;
  /** When the newest round that has ended began; null: none has. */
  readonly asked_ms: number | null;
  /** When the first of the current row of failed rounds began; null: the last one passed. */
  readonly failing_since_ms: number | null;
  /** Why the last round failed; null: it passed, or none has ended. */
  readonly reason: string | null;
}

/** How the configuration calls a check. */
export function labelOf(check: Check): string {
  return check.kind === 'http' ? check.url.href : `${check.name} @${check.server}`;
}
