/** Files of kits: pictures, flight logs and the like. */
export const files = {
  title: 'Files',
  logs: 'Flight logs and pictures',
  all: 'All files',
  open: 'Files of the kit',
  kind: {
    still: 'Picture',
    alarm_still: 'Picture of an alarm',
    clip: 'Clip',
    flight_log: 'Flight log',
    mission: 'Mission',
    support_bundle: 'Support bundle',
    other: 'File',
  },
  here: 'Here',
  atKit: 'At the kit',
  requested: 'Requested; the kit sends it when its link allows',
  onItsWay: (pct: string) => `On its way, ${pct}\u00a0%`,
  dropped: 'Not to be had',
  download: 'Download',
  downloadOf: (name: string) => `Download: ${name}`,
  request: 'Request now',
  requestOf: (name: string) => `Request now: ${name}`,
  openOf: ({ kind, time }: { kind: string; time: string }) => `${kind}, ${time}`,
  notHere: 'The picture is still at the kit.',
  none: {
    kit: 'No files yet. Cameras make pictures of alarms with "stills: true" under "files" in the configuration of the kit; drones make flight logs with "flight_logs: { after_flight: true }" or the command "download_log".',
    camera:
      'No pictures yet. They come with alarms where the configuration of the kit has "stills: true" under "files".',
    drone:
      'No flight logs yet. They come after each flight with "flight_logs: { after_flight: true }" in the options of the driver, or by the command "download_log".',
  },
};
