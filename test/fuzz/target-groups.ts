/** Every parser that reads what others wrote. */
import { contractTargets } from './contract-targets.ts';
import { deviceTargets } from './device-targets.ts';
import type { Target } from './engine.ts';
import { machineTargets } from './machine-targets.ts';

export const targets: readonly Target[] = [...contractTargets, ...deviceTargets, ...machineTargets];
