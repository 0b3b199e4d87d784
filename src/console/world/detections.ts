/** Feeds of cameras beside `motion` and `ai_detection` that report that something began or ended. */
export const other_detections = [
  'tamper',
  'doorbell',
  'digital_input',
  'sound',
  'picture_fault',
  'storage_fault',
] as const;
/** All of them. */
export const detection_feeds: ReadonlySet<string> = new Set(['motion', 'ai_detection', ...other_detections]);
