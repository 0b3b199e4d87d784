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
  const { health, ledger, salvage } = facts;
  const reasons: string[] = [];
  if (health.state === 'full') reasons.push(`the disk is full: ${health.detail}; free some space`);
  if (health.state === 'failing') {
    reasons.push(
      `the disk does not take messages: ${health.detail}; they are kept in memory, check the disk and its mount`,
    );
  }
  if (salvage) {
    const lost = salvage.rows_lost === null ? 'an unknown number' : String(salvage.rows_lost);
    reasons.push(
      `the buffer file was damaged (${salvage.cause}): ${salvage.rows_saved} messages saved, ${lost} lost; it is kept as ${salvage.moved_to}`,
    );
  }
  if (ledger.quarantined > 0) {
    reasons.push(
      `${ledger.quarantined} messages are refused by the broker; see kit-connector buffer quarantine list`,
    );
  }
  if (facts.unheard.length > 0) {
    reasons.push(
      `nobody at the broker listens to ${facts.unheard.join(', ')}: these messages wait; check the cloud's subscriptions`,
    );
  }
  for (const { name, state, reason } of facts.drivers) {
    if (state === 'rejected')
      reasons.push(
        `driver ${name} was refused: ${reason ?? 'no reason given'}; correct its options and restart`,
      );
    if (state === 'hung')
      reasons.push(`driver ${name} does not stop: ${reason ?? 'it was abandoned'}; restart the service`);
  }
  if (!facts.clock_synced)
    reasons.push('the clock is not set yet: times are corrected once it is; check NTP');
  if (!ledger.balanced) reasons.push('the books of the buffer do not balance: please report this');
  return [...reasons, ...facts.warnings];
}
