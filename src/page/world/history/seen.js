/** Turns detections of cameras into entries of the log. */
import { own } from '../json.js';
import { t } from '../../words/words.js';
import { addressOf } from '../route.js';
import { fieldOf } from '../world.js';

/** @import { Entry } from './log.js' */
/** @import { FeedMessage, ServerFrame, World } from '../../types.d.ts' */

/**
 * @param {ServerFrame} frame
 * @param {World} world as it is before the frame
 * @returns {Entry | undefined}
 */
export function seenEntry(frame, world) {
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

/**
 * @param {FeedMessage} message
 * @returns {string}
 */
function whatOf(message) {
  const types = fieldOf(message, 'types');
  if (!Array.isArray(types) || types.length === 0) return t.camera.motion;
  return types.map((type) => own(t.seen, String(type)) ?? String(type)).join(', ');
}
