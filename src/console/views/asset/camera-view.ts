/** The page of a camera: its video first, then moving it, its presets by name, its detector, and what it saw. */
import { feedFreshness } from '../../world/age.ts';
import { duration, clock } from '../../units.ts';
import { field, isRecord, listIn, own, textIn } from '../../json.ts';
import { other_detections } from '../../world/detections.ts';
import { detectionText, typesOf } from '../../world/history/log.ts';
import { label, plain } from '../../world/text.ts';
import { fieldOf } from '../../world/world.ts';
import { t } from '../../words/words.ts';
import { lockReason } from '../command/about.ts';
import { outcome } from '../command/command-view.ts';
import { fieldsOf } from '../command/form.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icon.ts';
import { age, card, isWideNow, name } from '../parts/marks.ts';
import { PtzPad } from './ptz.ts';
import { Still } from './still.ts';
import { Video } from './video.ts';
import type { FeedMessage, LiveAsset, Option, View } from '../../types.d.ts';
import type { Shared } from './drone-view.ts';

export function cameraBody(asset: LiveAsset, view: View, { first, past, commands, rest }: Shared) {
  const isWide = isWideNow();
  return html`<div class="page aside camera">
    <div class="column">
      ${first}${videoCard(asset, view)}${!isWide && presetsCard(asset, view)}${seenCard(asset, view)}
      ${isWide && past}
    </div>
    <div class="column">${isWide && presetsCard(asset, view)}${commands}${!isWide && past}${rest}</div>
  </div>`;
}

/** The picture, with the pad that moves the camera on it. */
function videoCard(asset: LiveAsset, view: View) {
  const seen = asset.whep_url ? seenNow(asset, view) : '';
  return html`<section key="video" class="card video-card" aria-label=${t.camera.video}>
    <div class="picture">
      ${asset.whep_url ? html`<${Video} key=${asset.whep_url} url=${asset.whep_url} title=${plain(asset.name)} />` : still(asset, view)}
      ${seen && html`<span class="video-tag low">${seen}</span>`}
    </div>
    ${pad(asset, view)}
  </section>`;
}

/** The service of the kit itself has pictures of cameras that offer `snapshot`; any has those of alarms. */
function still(asset: LiveAsset, view: View) {
  const hasPictures = view.world.commands.get(asset.id)?.some(({ name }) => name === 'snapshot') === true;
  const why = asset.health?.stream?.reason;
  const none = html`<p class="empty no-video">${why ? name(why) : t.camera.noVideo}</p>`;
  const path = `/api/kits/${view.choices.kit_id}/assets/${asset.id}/snapshot.jpg`;
  return html`<${Still}
    key=${`${asset.id} ${hasPictures}`}
    path=${hasPictures ? path : undefined}
    title=${plain(asset.name)}
    otherwise=${alarmPicture(asset, view) || none}
  />`;
}

/** What the detector sees now, while that is current. */
function seenNow(asset: LiveAsset, view: View): string {
  const { ai_detection, motion } = view.world.feeds.get(asset.id) ?? {};
  const seen = seenText(ai_detection);
  if (seen !== undefined && !feedFreshness(asset, 'ai_detection', view).isOld) return seen;
  return fieldOf(motion, 'detected') === true && !feedFreshness(asset, 'motion', view).isOld
    ? t.camera.motion
    : '';
}

/** The picture of the newest alarm that has one, or why it has none. */
function alarmPicture(asset: LiveAsset, view: View) {
  const message = view.world.feeds.get(asset.id)?.['alarm_picture'];
  if (!message) return '';
  const [alarm] = listIn(fieldOf(message, 'alarms'));
  const feed = textIn(field(alarm, 'feed'));
  const time = clock(Date.parse(textIn(field(alarm, 'timestamp'))));
  const what = plain(own(t.history.event, feed) ?? label(feed));
  const jpeg = textIn(fieldOf(message, 'jpeg'));
  if (jpeg === '')
    return html`<p class="empty no-video">
      ${t.camera.noPictureOf({ what, time, why: plain(fieldOf(message, 'reason')) })}
    </p>`;
  if (!/^[\w+/]+=*$/u.test(jpeg)) return '';
  const text = t.camera.pictureOf({ what, time });
  return html`<figure class="still">
    <img src=${`data:image/jpeg;base64,${jpeg}`} alt=${text} />
    <figcaption class="video-tag">${text}</figcaption>
  </figure>`;
}

function pad(asset: LiveAsset, view: View) {
  const command = view.world.commands.get(asset.id)?.find(({ name }) => name === 'ptz_move');
  if (!command) return '';
  const locked = lockReason(view, asset);
  const refused = view.choices.orders.get(`${asset.id} ptz_move`);
  return html`<${PtzPad} asset=${asset} command=${command} view=${view} />
    ${locked !== undefined && html`<p class="lock">${locked}</p>`}
    ${refused?.state === 'refused' || refused?.state === 'unknown' ? html`<p class="fault line last" role="status">${plain(refused.text)}</p>` : ''}`;
}

/** Presets by name: from the schema, else from the feed of the camera. */
function presetsCard(asset: LiveAsset, view: View) {
  const command = view.world.commands.get(asset.id)?.find(({ name }) => name === 'ptz_preset');
  const [input] = command ? (fieldsOf(command.input_schema) ?? []) : [];
  if (!command || !input) return '';
  const presets = input.kind === 'choice' ? input.choices : presetsOfFeed(asset, view);
  if (presets.length === 0) return '';
  const isLocked = lockReason(view, asset) !== undefined;
  const result = outcome(asset, command, view);
  return html`<section key="presets" class="presets" aria-label=${t.camera.goTo}>
    <h2 class="sec">${t.camera.goTo}</h2>
    <div class="chips">
      ${presets.map(({ value, text, json }) => {
        const go = () =>
          isLocked ? undefined : view.act.order({ asset, command, payload: { [input.name]: json } });
        return html`<button
          type="button"
          key=${value}
          class="chip"
          aria-disabled=${String(isLocked)}
          onClick=${go}
        >
          <bdi>${text}</bdi>
        </button>`;
      })}
    </div>
    ${result && html`<div class="outcome" role="status">${result}</div>`}
  </section>`;
}

function presetsOfFeed(asset: LiveAsset, view: View): readonly Option[] {
  const list = fieldOf(view.world.feeds.get(asset.id)?.['presets'], 'presets');
  if (!Array.isArray(list)) return [];
  return list.flatMap((each) => {
    const id = isRecord(each) ? (each['id'] ?? each['token']) : undefined;
    const text = isRecord(each) ? each['name'] : undefined;
    if (typeof id !== 'string' && typeof id !== 'number') return [];
    return [{ value: String(id), text: plain(text ?? id), json: id }];
  });
}

function seenCard(asset: LiveAsset, view: View) {
  const feeds = view.world.feeds.get(asset.id) ?? {};
  const rows = [
    {
      feed: 'ai_detection',
      sign: 'users' as const,
      text: seenText(feeds['ai_detection']) ?? t.camera.nothingSeen,
    },
    {
      feed: 'motion',
      sign: 'activity' as const,
      text: fieldOf(feeds['motion'], 'detected') === true ? t.camera.motion : t.camera.noMotion,
    },
    ...other_detections
      .filter((feed) => fieldOf(feeds[feed], 'detected') === true)
      .map((feed) => ({
        feed,
        sign: 'activity' as const,
        text: plain(detectionText(feed, feeds[feed]?.data)),
      })),
  ].filter(({ feed }) => feeds[feed]);
  if (rows.length === 0) return '';
  return card(
    'seen',
    t.camera.seen,
    html`<ul class="rows">
        ${rows.map(({ feed, sign, text }) => {
          const time_ms = Date.parse(feeds[feed]?.time ?? '');
          return html`<li key=${feed} class="event">
            <time>${clock(time_ms)}</time
            >${icon(sign)}<span>${text}</span>${age(feedFreshness(asset, feed, view))}
          </li>`;
        })}
      </ul>
      ${asset.whep_url && alarmPicture(asset, view)}`,
    html`<span class="age"
      >${t.camera.seenHint(duration(view.time_ms - Math.max(...rows.map(({ feed }) => Date.parse(feeds[feed]?.time ?? '')))))}</span
    >`,
  );
}

/** What the detector reports; undefined: nothing. */
function seenText(detection: FeedMessage | undefined) {
  if (fieldOf(detection, 'detected') !== true || !Array.isArray(fieldOf(detection, 'types')))
    return undefined;
  return typesOf(detection?.data)
    .map((type) => plain(type))
    .join(', ');
}
