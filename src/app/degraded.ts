/** Reasons for a degraded kit: one sentence each, what is wrong and what to do. */
import type { AssetView } from '../hub/assets/asset-view.ts';
import type { DriverView } from '../hub/hub.ts';
import type { LedgerReport } from '../outbox/ledger.ts';
import type { DiskHealth, Salvage } from '../outbox/protocol.ts';
import type { RefusedKind } from '../outbox/live/pauses/refusals.ts';

export interface DegradedFacts {
  readonly health: DiskHealth;
  readonly ledger: LedgerReport;
  readonly salvage: Salvage | undefined;
  readonly unheard: readonly string[];
  /** Between kit and broker. */
  readonly broker: readonly string[];
  readonly refused: readonly RefusedKind[];
  readonly drivers: readonly DriverView[];
  readonly assets: readonly Pick<AssetView, 'name' | 'stream_fault'>[];
  readonly clock_synced: boolean;
  /** Why power is saved; null: it is not. */
  readonly low_battery: string | null;
  readonly warnings: readonly string[];
}

export function degradedReasons(facts: DegradedFacts): string[] {
  return [
    ...diskReasons(facts.health),
    ...(facts.salvage ? [salvageReason(facts.salvage)] : []),
    ...bufferReasons(facts),
    ...facts.broker,
    ...facts.drivers.flatMap(driverReasons),
    ...withheldStreams(facts.assets),
    ...(facts.clock_synced ? [] : ['the clock is not set yet: times are corrected once it is; check NTP']),
    ...(facts.low_battery === null ? [] : [facts.low_battery]),
    ...facts.warnings,
  ];
}

function diskReasons({ state, detail }: DiskHealth): string[] {
  if (state === 'full') return [`the disk is full: ${detail}; free some space`];
  if (state === 'ok') return [];
  return [`disk write failed: ${detail}; messages are kept in memory, check the disk and its mount`];
}

/** Reasons that no other part of the report shows. */
export function otherReasons({ salvage, warnings }: Pick<DegradedFacts, 'salvage' | 'warnings'>): string[] {
  return [...(salvage ? [salvageReason(salvage)] : []), ...warnings];
}

function salvageReason({ kind, cause, rows_saved, rows_lost, moved_to }: Salvage): string {
  if (kind === 'other_kit')
    return `the buffer file belongs to another kit (${cause}): it was moved to ${moved_to}, and a new one was created`;
  if (kind === 'too_new')
    return `the buffer file needs a later release (${cause}): it was moved to ${moved_to}, and a new one was created`;
  const lost = rows_lost === null ? 'an unknown number' : String(rows_lost);
  return `the buffer file was damaged (${cause}): ${rows_saved} messages saved, ${lost} lost; it is kept as ${moved_to}`;
}

function bufferReasons({ ledger, unheard, refused }: DegradedFacts): string[] {
  const reasons: string[] = [];
  if (ledger.quarantined > 0) {
    reasons.push(
      `${ledger.quarantined} messages are refused by the broker; see kit-connector buffer quarantine list`,
    );
  }
  if (unheard.length > 0) {
    reasons.push(
      `no client of the broker is subscribed to ${unheard.join(', ')}: these messages wait; check the cloud's subscriptions`,
    );
  }
  for (const { kind, reason } of refused)
    reasons.push(
      `broker refuses messages of kind ${kind} (${reason}): they are kept; check its access rules`,
    );
  if (!ledger.balanced) reasons.push('the books of the buffer do not balance: please report this');
  return reasons;
}

/** One sentence for each fault, however many cameras have it. */
export function withheldStreams(assets: DegradedFacts['assets']): string[] {
  const names = new Map<string, string[]>();
  for (const { name, stream_fault } of assets) {
    if (stream_fault !== null) names.set(stream_fault, [...(names.get(stream_fault) ?? []), name]);
  }
  return Array.from(names, ([fault, all]) => {
    const more = all.length > named_cameras_max ? ` and ${all.length - named_cameras_max} more` : '';
    return `no video of ${all.slice(0, named_cameras_max).join(', ')}${more}: ${fault}`;
  });
}
const named_cameras_max = 4;

function driverReasons(driver: DriverView): string[] {
  const weaknesses = driver.devices?.flatMap(({ weakness = [] }) => weakness) ?? [];
  return [...stateReasons(driver), ...weaknesses];
}

function stateReasons({ name, state, reason }: DriverView): string[] {
  if (state === 'rejected')
    return [`driver ${name} was refused: ${reason ?? 'no reason given'}; correct its options, then reload`];
  if (state === 'hung')
    return [`driver ${name} does not stop: ${reason ?? 'it was abandoned'}; restart the service`];
  return [];
}
