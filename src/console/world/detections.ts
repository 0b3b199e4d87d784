/** Feeds beside `motion` and `ai_detection` that report that something began or ended. */
export const other_detections = [
  'tamper',
  'doorbell',
  'digital_input',
  'sound',
  'picture_fault',
  'storage_fault',
  'failsafe',
] as const;
/** All of them. */
export const detection_feeds: ReadonlySet<string> = new Set(['motion', 'ai_detection', ...other_detections]);

/** Severities of a vehicle's text that are bad. */
const severities_bad: ReadonlySet<unknown> = new Set(['emergency', 'alert', 'critical']);

/** How serious an event of a vehicle is; undefined: it is none. */
export function levelOfVehicle(feed: string, severity: unknown): 'bad' | 'warn' | undefined {
  if (feed !== 'alarm' && feed !== 'failsafe') return undefined;
  return severities_bad.has(severity) ? 'bad' : 'warn';
}
