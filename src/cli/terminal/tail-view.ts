/** A published message as one whole line of text. */
import type { TailLine, TailMessage } from '../../local/api.ts';
import { printable } from '../../platform/foreign-text.ts';
import { type Paint } from './shell.ts';
import { texts } from '../texts.ts';
import { localTime } from '../../platform/local-time.ts';

/** `12:30:01  Falcon  gps  lat=52.1 lon=4.3`: the whole message, without a limit of width. */
export function tailText(line: TailLine, paint: Paint): string {
  if (line.kind === 'skipped') return paint('warn', texts.skipped(line.lines));
  const facts = line.data === null ? texts.cleared : printable(factsText(line.data));
  return [
    paint('dim', localTime(line.time)),
    paint('bold', subjectOf(line)),
    paint('name', printable(line.feed)),
    facts,
  ].join('  ');
}

function subjectOf({ asset, channel }: TailMessage): string {
  if (asset) return printable(asset.name);
  return printable(channel.split('/')[1] ?? texts.kit);
}

function factsText(data: NonNullable<TailMessage['data']>): string {
  return Object.entries(data)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ');
}
