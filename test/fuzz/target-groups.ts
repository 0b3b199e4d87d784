/** Every parser that reads what others wrote. */
import { contractTargets } from './contract-targets.ts';
import { deviceTargets } from './device-targets.ts';
import type { Target } from './engine.ts';
import { machineTargets } from './machine-targets.ts';
import { serviceTargets } from './service-targets.ts';
import { wireTargets } from './wire-targets.ts';

/** `group`: the folder of `corpus/` that holds its corpus. */
export interface GroupedTarget extends Target {
  readonly group: string;
}

const groups = {
  contract: contractTargets,
  devices: deviceTargets,
  machine: machineTargets,
  service: serviceTargets,
  wire: wireTargets,
};

export const targets: readonly GroupedTarget[] = Object.entries(groups).flatMap(([group, members]) =>
  members.map((target) => ({ ...target, group })),
);
