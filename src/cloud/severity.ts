/** How grave an alarm is, the least grave first. */
import { z } from 'zod';

export const alarmSeverities = ['info', 'warning', 'critical'] as const;
export const alarmSeverity = z.enum(alarmSeverities);
export type AlarmSeverity = z.output<typeof alarmSeverity>;
