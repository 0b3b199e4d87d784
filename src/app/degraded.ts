/** Why the kit is not at its best: one sentence each, what is wrong and what to do. */
import type { DriverView } from '../hub/hub.ts';
import type { LedgerReport } from '../outbox/ledger.ts';
import type { DiskHealth, Salvage } from '../outbox/protocol.ts';

export interface DegradedFacts {
  readonly health: DiskHealth;
  readonly ledger: LedgerReport;
  readonly salvage: Salvage | undefined;
  readonly unheard: readonly string[];
  readonly drivers: readonly DriverView[];
  readonly clock_synced: boolean;
  readonly warnings: readonly string[];
}

export function degradedReasons(facts: DegradedFacts): string[] {
  return [
    ...diskReasons(facts.health),
    ...(facts.salvage ? [salvageReason(facts.salvage)] : []),
    ...bufferReasons(facts),
    ...facts.drivers.flatMap(driverReasons),
    ...(facts.clock_synced ? [] : ['the clock is not set yet: times are corrected once it is; check NTP']),
    ...facts.warnings,
  ];
}

function diskReasons({ state, detail }: DiskHealth): string[] {
  if (state === 'full') return [`the disk is full: ${detail}; free some space`];
  if (state === 'ok') return [];
  return [
    `the disk does not take messages: ${detail}; they are kept in memory, check the disk and its mount`,
  ];
}

/** What the other parts of a report do not tell of. */
export function otherReasons({ salvage, warnings }: Pick<DegradedFacts, 'salvage' | 'warnings'>): string[] {
  return [...(salvage ? [salvageReason(salvage)] : []), ...warnings];
}

function salvageReason({ cause, rows_saved, rows_lost, moved_to }: Salvage): string {
  const lost = rows_lost === null ? 'an unknown number' : String(rows_lost);
  return `the buffer file was damaged (${cause}): ${rows_saved} messages saved, ${lost} lost; it is kept as ${moved_to}`;
}

function bufferReasons({ ledger, unheard }: DegradedFacts): string[] {
  const reasons: string[] = [];
  if (ledger.quarantined > 0) {
    reasons.push(
      `${ledger.quarantined} messages are refused by the broker; see kit-connector buffer quarantine list`,
    );
  }
  if (unheard.length > 0) {
    reasons.push(
      `nobody at the broker listens to ${unheard.join(', ')}: these messages wait; check the cloud's subscriptions`,
    );
  }
  if (!ledger.balanced) reasons.push('the books of the buffer do not balance: please report this');
  return reasons;
}

function driverReasons({ name, state, reason }: DriverView): string[] {
  if (state === 'rejected')
    return [`driver ${name} was refused: ${reason ?? 'no reason given'}; correct its options, then reload`];
  if (state === 'hung')
    return [`driver ${name} does not stop: ${reason ?? 'it was abandoned'}; restart the service`];
  return [];
}
