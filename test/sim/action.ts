/** One thing that happens in a story. */
import type { FaultKind } from './faults/faults.ts';

export interface Action {
  readonly at_ms: number;
  readonly kind: FaultKind;
  /** How long it lasts. */
  readonly ms: number;
  readonly n: number;
  readonly how: string;
}
