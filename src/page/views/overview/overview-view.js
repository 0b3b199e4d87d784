/** The first screen of a kit: its state in one sentence, what needs a person, then the figures. */
import { isKitReachable } from '../../world/age.js';
import { queueFreshness } from '../../world/queue.js';
import { addressOf } from '../../world/route.js';
import { clock } from '../../world/units.js';
import { t } from '../../words/words.js';
import { assetsCard } from '../assets/asset-row.js';
import { linksCard, linkTitle } from '../links/link-row.js';
import { lazy } from '../parts/lazy.js';
import { html } from '../parts/html.js';
import { icon, iconOfLink, shape } from '../parts/icon.js';
import { name } from '../parts/marks.js';
import { plain } from '../../world/text.js';
import { attentionList } from './attention.js';
import { tiles } from './tiles.js';
import { ratesOf } from '../links/figures.js';

/** @import { Link, View } from '../../types.d.ts' */

const attention_shown_max = 20;
const map = lazy(async () => (await import('../map/map-box.js')).mapBox);

/** @param {View} view */
export function overview(view) {
  const { world } = view;
  const sentence = heroText(view);
  return {
    heading: { title: sentence, isKit: true, tools: kitAge(view) },
    body: html`<div class="page two">
      <div class="column">
        ${lostBox(view)}
        <section key="path" class="card pad path-card" aria-label=${t.path.label}>
          <h1 class="hero only-phone">${sentence}</h1>
          ${world.kit && pathView(view)}
        </section>
        ${attentionCard(view)} ${linksCard(view)} ${tiles(view)}
      </div>
      <div class="column">${mapPart(view)} ${assetsCard(view)}</div>
    </div>`,
  };
}

/**
 * The map; its place while the module is fetched.
 * @param {View} view
 */
function mapPart(view) {
  map.load(view.act);
  return map.now()?.(view, { isSmall: true }) ?? html`<section key="map" class="mapbox small"></section>`;
}

/**
 * The state of the kit, as one sentence.
 * @param {View} view
 * @returns {string}
 */
function heroText(view) {
  const { world, link } = view;
  const { kit } = world;
  if (!kit) return t.hero.waiting;
  if (!kit.last_seen) return t.hero.never;
  const way = linkInUse(view);
  const through = way ? plain(linkTitle(way)) : '';
  if (link.state === 'lost') return kit.online ? t.hero.wasOnline(through) : t.hero.offline;
  return kit.online ? t.hero.online(through) : t.hero.offline;
}

/**
 * @param {Pick<View, 'world'>} view
 * @returns {Link | undefined}
 */
function linkInUse({ world }) {
  return world.kit?.wans.find(({ status }) => status === 'online');
}

/** @param {View} view */
function kitAge({ world, time_ms, link }) {
  const seen = world.kit?.last_seen;
  if (!seen) return '';
  const text =
    link.state === 'lost'
      ? t.shownAsOf(clock(Date.parse(seen), { isExact: true }))
      : t.updatedAgo(time_ms - Date.parse(seen));
  return html`<span class="age">${text}</span>`;
}

/**
 * While the page's link is lost: since when what is shown is known.
 * @param {View} view
 */
export function lostBox({ link, world, time_ms }) {
  if (link.state !== 'lost' || !world.kit) return '';
  const since_ms = time_ms - (performance.now() - link.since_ms);
  return html`<section key="lost" class="card notice" role="status">
    <b>${t.lost.title}</b><span>${t.lost.text(clock(since_ms, { isExact: true }))}</span>
  </section>`;
}

/** @param {View} view */
function pathView(view) {
  const { world } = view;
  const way = linkInUse(view);
  const isUp = isKitReachable(view);
  const queue = queueFreshness(view).isOld ? undefined : world.queue?.waiting_rows;
  const waiting = typeof queue === 'number' ? t.path.waiting(queue) : '';
  const rates = way && isUp ? ratesOf(way) : [];
  return html`<div class=${isUp ? 'path' : 'path broken'}>
    <span class="n"><i>${icon('server', 'l')}</i>${t.path.kit}</span>
    <span class="w"><span>${rates.map((rate) => html`<span>${rate}</span> `)}</span></span>
    <span class=${isUp && way ? 'n on' : 'n'}
      ><i>${icon(iconOfLink(way?.type), 'l')}</i>${way ? name(linkTitle(way)) : t.path.noLink}</span
    >
    <span class="w"><span>${isUp ? waiting : ''}</span></span>
    <span class="n"><i>${icon('cloud', 'l')}</i>${t.path.service}</span>
  </div>`;
}

/** @param {View} view */
function attentionCard(view) {
  const list = attentionList(view);
  const isLost = view.link.state === 'lost';
  const nothing = isLost ? t.attention.notKnown : view.world.kit ? t.attention.nothing : t.hero.waiting;
  const aside = list.length > 0 ? html`<span class="state warn">${shape('warn')}${list.length}</span>` : '';
  return html`<section class="card" id="attention" aria-labelledby="attention-title" aria-live="polite">
    <header>
      <h2 class="sec" id="attention-title">${t.attention.title}</h2>
      ${aside}
    </header>
    ${
      list.length === 0
        ? html`<p class="empty">${nothing}</p>`
        : html`<ul class="rows attention">
            ${list.slice(0, attention_shown_max).map(
              ({ key, level, icon: sign, title, detail, href }) =>
                html`<li key=${key}>
                  <a class=${level} href=${href}
                    ><span class="ic">${icon(sign)}</span
                    ><span><b>${name(title)}</b><span class="cap">${name(detail)}</span></span
                    >${icon('chevron-right', 's')}</a
                  >
                </li>`,
            )}
          </ul>`
    }
    ${
      list.length > attention_shown_max &&
      html`<a class="btn plain more" href=${addressOf('assets', view.choices.kit_id)}
        >${t.attention.more(list.length - attention_shown_max)}</a
      >`
    }
  </section>`;
}
