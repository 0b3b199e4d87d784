/** A published message as one readable line. */
import type { TailLine, TailMessage } from '../local/api.ts';
import { type Paint, clockTime } from './shell.ts';

/** `12:30:01  Falcon  gps  lat=52.1 lon=4.3`; cut to `columns` where the line would wrap. */
export function tailText(line: TailLine, paint: Paint, columns?: number): string {
  if (line.kind === 'skipped') {
    return paint('warn', `... ${line.lines} lines were skipped: this reader is too slow`);
  }
  const head = [clockTime(line.time), subjectOf(line), line.feed];
  const room = !columns ? Infinity : Math.max(columns - head.join('  ').length - 2, 20);
  const facts = line.data === null ? 'cleared' : factsText(line.data);
  const text = facts.length > room ? `${facts.slice(0, room - 1)}…` : facts;
  return `${paint('dim', head[0] ?? '')}  ${paint('bold', head[1] ?? '')}  ${paint('good', line.feed)}  ${text}`;
}

function subjectOf({ asset, channel }: TailMessage): string {
  if (asset) return asset.name;
  return channel.split('/')[1] ?? 'kit';
}

function factsText(data: NonNullable<TailMessage['data']>): string {
  return Object.entries(data)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ');
}
