/** The first screen of a kit: its state in one sentence, what needs a person, then the figures. */
import { isKitReachable, queueFreshness } from '../../world/age.ts';
import { addressOf } from '../../world/route.ts';
import { clock } from '../../units.ts';
import { t } from '../../words/words.ts';
import { assetsCard } from '../assets/asset-row.ts';
import { linksCard, linkTitle, ratesOf } from '../links/link-row.ts';
import { lazy } from '../parts/lazy.ts';
import { html } from '../parts/html.ts';
import { icon, iconOfLink, shape } from '../parts/icon.ts';
import { lostBox, name } from '../parts/marks.ts';
import { plain } from '../../world/text.ts';
import { attentionList } from '../attention.ts';
import { tiles } from './tiles.ts';
import type { Link, View } from '../../types.d.ts';

const attention_shown_max = 20;
const map = lazy(async () => (await import('../map/map-box.ts')).mapBox);

export function overview(view: View) {
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

/** The map; its place while the module is fetched. */
function mapPart(view: View) {
  map.load(view.act);
  return map.now()?.(view, { isSmall: true }) ?? html`<section key="map" class="mapbox small"></section>`;
}

/** The state of the kit, as one sentence. */
function heroText(view: View): string {
  const { world, link } = view;
  const { kit } = world;
  if (!kit) return t.hero.waiting;
  if (!kit.last_seen) return t.hero.never;
  const way = linkInUse(view);
  const through = way ? plain(linkTitle(way)) : '';
  if (link.state === 'lost') return kit.online ? t.hero.wasOnline(through) : t.hero.offline;
  return kit.online ? t.hero.online(through) : t.hero.offline;
}

function linkInUse({ world }: Pick<View, 'world'>): Link | undefined {
  return world.kit?.wans.find(({ status }) => status === 'online');
}

function kitAge({ world, time_ms, link }: View) {
  const seen = world.kit?.last_seen;
  if (!seen) return '';
  const text =
    link.state === 'lost'
      ? t.shownAsOf(clock(Date.parse(seen), { isExact: true }))
      : t.updatedAgo(time_ms - Date.parse(seen));
  return html`<span class="age">${text}</span>`;
}

function pathView(view: View) {
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
      ><i>${icon(iconOfLink(way?.type), 'l')}</i>${way ? name(linkTitle(way)) : t.notReported}</span
    >
    <span class="w"><span>${isUp ? waiting : ''}</span></span>
    <span class="n"><i>${icon('cloud', 'l')}</i>${t.path.service}</span>
  </div>`;
}

function attentionCard(view: View) {
  const list = attentionList(view);
  const isLost = view.link.state === 'lost';
  const nothing = isLost ? t.attention.notKnown : view.world.kit ? t.attention.nothing : t.hero.waiting;
  if (list.length === 0)
    return html`<section
      class="card calm"
      id="attention"
      aria-labelledby="attention-title"
      aria-live="polite"
    >
      <h2 class="unseen" id="attention-title">${t.attention.title}</h2>
      <p>${nothing}</p>
    </section>`;
  const aside = html`<span class="state warn">${shape('warn')}${list.length}</span>`;
  return html`<section class="card" id="attention" aria-labelledby="attention-title" aria-live="polite">
    <header>
      <h2 class="sec" id="attention-title">${t.attention.title}</h2>
      ${aside}
    </header>
    <ul class="rows attention">
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
    </ul>
    ${
      list.length > attention_shown_max &&
      html`<a class="btn plain more" href=${addressOf('assets', view.choices.kit_id)}
        >${t.attention.more(list.length - attention_shown_max)}</a
      >`
    }
  </section>`;
}
