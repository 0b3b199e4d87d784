/** Tracks as GeoJSON (RFC 7946), GPX 1.1 and CSV. */
import type { Track, TrackPoint } from './track.ts';

interface Named {
  readonly asset_id: string;
  readonly name: string;
}

/** A feature with one line for each stretch without a gap; `times` has the time of each of its points. */
export function trackGeoJson({ lines, fixes }: Track, { asset_id, name }: Named) {
  return {
    type: 'Feature' as const,
    properties: {
      asset_id,
      name,
      fixes,
      times: lines.map((line) => line.map(({ time_ms }) => new Date(time_ms).toISOString())),
    },
    geometry: { type: 'MultiLineString' as const, coordinates: lines.map((line) => line.map(position)) },
  };
}

function position({ lon, lat, alt_m }: TrackPoint): number[] {
  return alt_m === null ? [lon, lat] : [lon, lat, alt_m];
}

export function trackGpx({ lines }: Track, { name }: Named): string {
  const segments = lines.map((line) => `<trkseg>${line.map(gpxPoint).join('')}</trkseg>`);
  return `<?xml version="1.0" encoding="UTF-8"?>
<gpx version="1.1" creator="kit-connector" xmlns="http://www.topografix.com/GPX/1/1">
<trk><name>${escaped(name)}</name>${segments.join('\n')}</trk>
</gpx>
`;
}

function gpxPoint({ lat, lon, alt_m, time_ms }: TrackPoint): string {
  const ele = alt_m === null ? '' : `<ele>${alt_m}</ele>`;
  return `<trkpt lat="${lat}" lon="${lon}">${ele}<time>${new Date(time_ms).toISOString()}</time></trkpt>`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** A row for each point; `line` counts the stretches without a gap. */
export function trackCsv({ lines }: Track): string {
  const rows = lines.flatMap((line, index) =>
    line.map(({ time_ms, lat, lon, alt_m }) =>
      [new Date(time_ms).toISOString(), lat, lon, alt_m ?? '', index + 1].join(','),
    ),
  );
  return ['time,lat,lon,alt_m,line', ...rows, ''].join('\r\n');
}
