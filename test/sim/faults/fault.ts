/** What one kind of work or fault is. */
import type { Rng } from '../world/rng.ts';
import type { Scene } from '../scene.ts';

export interface Drawn {
  readonly ms?: number;
  readonly n?: number;
  readonly how?: string;
}

export interface Fault {
  /** Not a fault: what a kit is there for. */
  readonly is_work: boolean;
  /** In a calm story. */
  readonly per_minute: number;
  readonly draw: (rng: Rng) => Drawn;
  readonly apply: (scene: Scene, action: Required<Drawn>) => void;
}

export function workOf(about: Omit<Fault, 'is_work'>): Fault {
  return { is_work: true, ...about };
}

export function faultOf(about: Omit<Fault, 'is_work'>): Fault {
  return { is_work: false, ...about };
}
