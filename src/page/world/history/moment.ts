/** What an asset reported at the moment of the past that is looked at. */
import { field, isRecord, listIn, textIn } from '../json.ts';
import type { FeedMessage, LiveAsset, View } from '../../types.d.ts';

/** Kits repeat what does not change every 300 s. */
const repeated_ms = 330_000;

/** `isLoading`: some are not those of the moment yet. */
export interface FeedsThen {
  readonly feeds: Readonly<Record<string, FeedMessage>>;
  readonly isLoading: boolean;
  readonly fault: string;
}

/** The last message of each of these feeds before the moment; undefined while now is shown. */
export function feedsThen({ id }: LiveAsset, names: readonly string[], view: View): FeedsThen | undefined {
  const { moment_ms } = view.choices;
  if (moment_ms === null) return undefined;
  const to_ms = Math.round(moment_ms) + 1;
  const feeds: Record<string, FeedMessage> = {};
  let isLoading = false;
  let fault = '';
  for (const name of names) {
    const path = `/assets/${id}/history?feed=${name}&order=desc&limit=1&from=${to_ms - repeated_ms}&to=${to_ms}`;
    const answer = view.history.read(view, `moment ${id} ${name}`, path);
    fault ||= answer.fault;
    if (!answer.path.endsWith(path)) {
      isLoading = true;
      continue;
    }
    const message = messageIn(listIn(field(answer.value, 'messages'))[0]);
    if (message) feeds[name] = message;
  }
  return { feeds, isLoading: isLoading && fault === '', fault };
}

function messageIn(value: unknown): FeedMessage | undefined {
  const data = field(value, 'data');
  return isMessage(data) ? { time: textIn(field(value, 'time')), data } : undefined;
}

/** The service sends JSON only. */
function isMessage(value: unknown): value is FeedMessage['data'] {
  return isRecord(value);
}
