/** Times as people read them: local, and with the date when it is of another day. JSON has UTC instead. */

/** `16:54:21`, or `2026-11-25 16:54:21` when that is not today. */
export function localTime(time: string | number, now = new Date()): string {
  const at = new Date(time);
  const of_day = [at.getHours(), at.getMinutes(), at.getSeconds()].map(twoDigits).join(':');
  return at.toDateString() === now.toDateString() ? of_day : `${dayOf(at)} ${of_day}`;
}

function dayOf(at: Date): string {
  return [at.getFullYear(), at.getMonth() + 1, at.getDate()].map(twoDigits).join('-');
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0');
}
