/** Positions as KML 2.2 (OGC 07-147r2). The order of elements is that of its schema, which strict readers check. */
import type { AssetFeature } from './layer-resources.ts';
import { decimal, escaped } from './xml.ts';

/** Alpha, blue, green, red. No picture is named: it would be fetched from another server. */
const colors = { online: 'ff50af4c', offline: 'ff9e9e9e' } as const;

/** A folder for each kit. Heights are above the ellipsoid, those of KML above the sea: marks lie on the ground. */
export function layerKml(features: readonly AssetFeature[]): string {
  const styles = Object.entries(colors).map(
    ([status, color]) => `<Style id="${status}"><IconStyle><color>${color}</color></IconStyle></Style>`,
  );
  const folders = Map.groupBy(features, ({ properties }) => properties.kit_id).values();
  return kmlDocument('kit-connector', [
    ...styles,
    ...folders.map(
      (own) =>
        `<Folder><name>${escaped(own[0]?.properties.kit_name ?? '')}</name>\n${own.map(markOf).join('\n')}\n</Folder>`,
    ),
  ]);
}

/** @param href where the positions are, as an absolute address: the file is kept on a disk */
export function linkKml(href: string, refresh_s: number): string {
  return kmlDocument('kit-connector', [
    `<NetworkLink><name>kit-connector</name>
<Link><href>${escaped(href)}</href><refreshMode>onInterval</refreshMode><refreshInterval>${refresh_s}</refreshInterval></Link></NetworkLink>`,
  ]);
}

function markOf({ id, geometry, properties }: AssetFeature): string {
  const { kit_id: _kit, kit_name: _name, name, id: _id, ...about } = properties;
  const data = Object.entries(about).flatMap(([key, value]) =>
    value === null ? [] : [`<Data name="${key}"><value>${escaped(String(value))}</value></Data>`],
  );
  // An id of XML begins with a letter.
  const shown = `<styleUrl>#${about.status}</styleUrl><ExtendedData>${data.join('')}</ExtendedData>`;
  const point = `<Point><coordinates>${geometry.coordinates.map(decimal).join(',')}</coordinates></Point>`;
  return `<Placemark id="a-${id}"><name>${escaped(name)}</name>${shown}${point}</Placemark>`;
}

/** @param name escaped */
export function kmlDocument(name: string, parts: readonly string[]): string {
  return `<?xml version="1.0" encoding="UTF-8"?>
<kml xmlns="http://www.opengis.net/kml/2.2"><Document><name>${name}</name>
${parts.join('\n')}
</Document></kml>
`;
}
