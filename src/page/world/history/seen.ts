/** Turns detections of cameras into entries of the log. */
import { own } from '../json.ts';
import { t } from '../../words/words.ts';
import { addressOf } from '../route.ts';
import { fieldOf } from '../world.ts';
import type { Entry } from './log.ts';
import type { FeedMessage, ServerFrame, World } from '../../types.d.ts';

/** @param world as it is before the frame */
export function seenEntry(frame: ServerFrame, world: World): Entry | undefined {
  if (frame.type !== 'feed' || (frame.feed !== 'motion' && frame.feed !== 'ai_detection')) return undefined;
  const before = world.feeds.get(frame.asset_id)?.[frame.feed];
  if (fieldOf(frame.message, 'detected') !== true || fieldOf(before, 'detected') === true) return undefined;
  const what = whatOf(frame.message);
  const name = world.assets.get(frame.asset_id)?.name ?? '';
  return {
    key: `seen ${frame.asset_id} ${frame.feed}`,
    kind: 'seen',
    level: 'info',
    title: `${name}: ${what}`,
    since_ms: Date.parse(frame.message.time),
    until_ms: null,
    href: addressOf('asset', world.kit?.kit_id ?? null, frame.asset_id),
  };
}

function whatOf(message: FeedMessage): string {
  const types = fieldOf(message, 'types');
  if (!Array.isArray(types) || types.length === 0) return t.camera.motion;
  return types.map((type) => own(t.seen, String(type)) ?? String(type)).join(', ');
}
