/** Dateien von Kits: Bilder, Flugprotokolle und dergleichen. */
import type { files as english } from '../en/files.ts';

export const files: typeof english = {
  title: 'Dateien',
  logs: 'Flugprotokolle und Bilder',
  all: 'Alle Dateien',
  open: 'Dateien des Kits',
  kind: {
    still: 'Bild',
    alarm_still: 'Bild zu einem Alarm',
    clip: 'Videoausschnitt',
    flight_log: 'Flugprotokoll',
    mission: 'Mission',
    support_bundle: 'Supportpaket',
    other: 'Datei',
  },
  here: 'Hier',
  atKit: 'Am Kit',
  requested: 'Angefordert; das Kit sendet sie, sobald seine Verbindung es erlaubt',
  onItsWay: (pct) => `Unterwegs, ${pct}\u00a0%`,
  dropped: 'Nicht mehr zu haben',
  download: 'Herunterladen',
  downloadOf: (name) => `Herunterladen: ${name}`,
  request: 'Jetzt anfordern',
  requestOf: (name) => `Jetzt anfordern: ${name}`,
  openOf: ({ kind, time }) => `${kind}, ${time}`,
  notHere: 'Das Bild ist noch am Kit.',
  none: {
    kit: 'Noch keine Dateien. Kameras machen Bilder zu Alarmen mit „stills: true“ unter „files“ in der Konfiguration des Kits; Drohnen liefern Flugprotokolle mit „flight_logs: { after_flight: true }“ oder durch den Befehl „download_log“.',
    camera:
      'Noch keine Bilder. Sie kommen mit Alarmen, wenn in der Konfiguration des Kits „stills: true“ unter „files“ steht.',
    drone:
      'Noch keine Flugprotokolle. Sie kommen nach jedem Flug mit „flight_logs: { after_flight: true }“ in den Optionen des Treibers, oder durch den Befehl „download_log“.',
  },
};
