/** Reads the time of a camera from GetSystemDateAndTimeResponse (ONVIF Core, section 8.1). Pure. */
import { everywhere, textAt, type XmlNode } from './xml.ts';

const ms_per_min = 60_000;

/** Milliseconds since 1970; undefined where it is not reported. Some cameras report their local time alone. */
export function cameraTime(body: XmlNode): number | undefined {
  const utc_ms = timeOf(everywhere(body, 'utcDateTime')[0]);
  if (utc_ms !== undefined) return utc_ms;
  const local_ms = timeOf(everywhere(body, 'localDateTime')[0]);
  const zone = everywhere(body, 'tz')[0]?.text ?? '';
  return local_ms === undefined ? undefined : local_ms + minutesWest(zone) * ms_per_min;
}

/** Of the standard time of a zone in POSIX form: `EST5EDT,M3.2.0,M11.1.0`, `CST-8`, `<+0530>-5:30`. */
function minutesWest(zone: string): number {
  const [, sign, hours = '0', minutes = '0'] =
    /^(?:<[^>]{1,16}>|[a-z]{1,16})([+-]?)(\d{1,2})(?::(\d{1,2}))?/iu.exec(zone) ?? [];
  const total = Number(hours) * 60 + Number(minutes);
  return sign === '-' ? -total : total;
}

function timeOf(node: XmlNode | undefined): number | undefined {
  const part = (...path: readonly string[]): number => Number(textAt(node, ...path) ?? Number.NaN);
  const [year, month, day] = [part('date', 'year'), part('date', 'month'), part('date', 'day')];
  const time_ms = Date.UTC(
    year,
    month - 1,
    day,
    part('time', 'hour'),
    part('time', 'minute'),
    part('time', 'second'),
  );
  return Number.isFinite(time_ms) ? time_ms : undefined;
}
