/** Reasons for a degraded kit: one sentence each, what is wrong and what to do. */
import type { AssetView } from '../hub/assets/asset-view.ts';
import type { StorageFault } from '../errors.ts';
import type { DriverView } from '../hub/hub.ts';
import type { Dropping } from '../outbox/live/drops/episodes.ts';
import type { LedgerReport } from '../outbox/ledger.ts';
import type { DiskHealth, Salvage } from '../outbox/protocol.ts';
import type { RefusedKind } from '../outbox/live/pauses/refusals.ts';
import { texts } from './texts.ts';

export interface DegradedFacts {
  readonly health: DiskHealth;
  readonly ledger: LedgerReport;
  /** For want of room. */
  readonly dropping: readonly Dropping[];
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
  /** Parts of the daemon that do not run. */
  readonly conditions: readonly string[];
  readonly warnings: readonly string[];
}

export function degradedReasons(facts: DegradedFacts): string[] {
  return [
    ...diskReasons(facts.health),
    ...(facts.salvage ? [salvageReason(facts.salvage)] : []),
    ...droppingReasons(facts.dropping),
    ...bufferReasons(facts),
    ...facts.broker,
    ...facts.conditions,
    ...facts.drivers.flatMap(driverReasons),
    ...withheldStreams(facts.assets),
    ...facts.warnings,
    ...(facts.clock_synced ? [] : [texts.clock_not_set]),
    ...(facts.low_battery === null ? [] : [facts.low_battery]),
  ];
}

function diskReasons({ state, detail, fault }: DiskHealth): string[] {
  if (state === 'full') return [texts.disk_full(detail)];
  if (state === 'ok') return [];
  return [(fault ? disk_reasons[fault] : texts.disk_write_failed)(detail)];
}

const disk_reasons: Readonly<Record<StorageFault, (detail: string) => string>> = {
  full: texts.disk_full_memory,
  read_only: texts.disk_read_only,
  busy: texts.disk_locked,
};

/** Reasons that no other part of the report shows. */
export function otherReasons({ salvage, warnings }: Pick<DegradedFacts, 'salvage' | 'warnings'>): string[] {
  return [...(salvage ? [salvageReason(salvage)] : []), ...warnings];
}

function salvageReason({ kind, cause, rows_saved, rows_lost, moved_to }: Salvage): string {
  if (kind === 'other_kit') return texts.file_other_kit(cause, moved_to);
  if (kind === 'too_new') return texts.file_too_new(cause, moved_to);
  const lost = rows_lost === null ? texts.unknown_number : String(rows_lost);
  if (kind === 'replaced') return texts.file_replaced(rows_saved, lost, moved_to);
  return texts.file_damaged(cause, rows_saved, lost, moved_to);
}

export function droppingReasons(dropping: readonly Dropping[]): string[] {
  return dropping.map(({ cause, lanes }) => texts.dropping[cause](lanes.join(', ')));
}

function bufferReasons({ ledger, unheard, refused }: DegradedFacts): string[] {
  const reasons: string[] = [];
  if (ledger.quarantined > 0) {
    reasons.push(texts.quarantined(ledger.quarantined));
  }
  if (unheard.length > 0) {
    reasons.push(texts.no_subscriber(unheard.join(', ')));
  }
  for (const { kind, reason } of refused) reasons.push(texts.kind_refused(kind, reason));
  if (!ledger.balanced) reasons.push(texts.accounting_mismatch);
  return reasons;
}

/** One sentence for each fault, however many cameras have it. */
export function withheldStreams(assets: DegradedFacts['assets']): string[] {
  const names = new Map<string, string[]>();
  for (const { name, stream_fault } of assets) {
    if (stream_fault !== null) names.set(stream_fault, [...(names.get(stream_fault) ?? []), name]);
  }
  return Array.from(names, ([fault, all]) => {
    const more = all.length > named_cameras_max ? texts.and_more(all.length - named_cameras_max) : '';
    return texts.no_video(all.slice(0, named_cameras_max).join(', ') + more, fault);
  });
}
const named_cameras_max = 4;

function driverReasons(driver: DriverView): string[] {
  const weaknesses = driver.devices?.flatMap(({ weakness = [] }) => weakness) ?? [];
  return [...stateReasons(driver), ...weaknesses];
}

function stateReasons({ name, state, reason }: DriverView): string[] {
  if (state === 'rejected') return [texts.driver_rejected(name, reason ?? texts.no_reason)];
  if (state === 'hung') return [texts.driver_hung(name, reason ?? texts.driver_abandoned)];
  return [];
}

/** Parts of the daemon whose faults last: each has one sentence until the part has recovered. */
export type ConditionKind = 'configuration' | 'service' | 'metrics';

export class Conditions {
  readonly #present = new Map<ConditionKind, string>();

  /** What is wrong and what to do, until `clear`. */
  note(kind: ConditionKind, sentence: string): void {
    this.#present.set(kind, sentence);
  }

  clear(kind: ConditionKind): void {
    this.#present.delete(kind);
  }

  sentences(): readonly string[] {
    return [...this.#present.values()];
  }
}
