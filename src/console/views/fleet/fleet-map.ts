/** Where the kits are: a mark for each kit, or for kits that are close together, which opens when it is tapped. */
import { addressOf } from '../../world/route.ts';
import { bearingOf, type Place } from '../../world/geo.ts';
import { plain } from '../../world/text.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icon.ts';
import { name, state } from '../parts/marks.ts';
import { controls, credit, MapPicture, zoomBy } from '../map/map-box.ts';
import { groupsOf, placeLabels, scaleBar } from '../map/overlay.ts';
import { sectionAround, type Frame, type Section } from '../map/frame.ts';
import type { View } from '../../types.d.ts';
import type { Entry } from './kit-rows.ts';

interface Mark {
  readonly x: number;
  readonly y: number;
  readonly placed: readonly Placed[];
}
type Placed = Place & { readonly entry: Entry };

/** Marks that are closer become one. */
const near_px = 30;
/** Kits that are closer cannot be told apart by zooming. */
const same_m = 20;
const label_chars_max = 24;
const worst = ['offline', 'attention', 'none', 'online'] as const;
const shapes = { online: 'on', attention: 'warn', offline: 'off', none: 'ring' };

export function fleetMap(entries: readonly Entry[], view: View) {
  const placed = entries.flatMap((entry): Placed[] => {
    const { latitude: lat, longitude: lon } = entry.kit.live?.location ?? {};
    return typeof lat === 'number' && typeof lon === 'number' ? [{ entry, lat, lon }] : [];
  });
  const section = sectionAround(middleOf(placed), placed, view);
  if (!section)
    return html`<section key="map" class="card map-empty"><p class="empty">${t.map.noPosition}</p></section>`;
  const shown = {
    section,
    hasWheel: true,
    summary: t.kits.mapSummary(placed.length),
    draw: (frame: Frame) =>
      html`${marksView(marksOf(placed, frame), { frame, section, view })}${scaleBar(frame)}`,
  };
  return html`<section key="map" id="map" class="mapbox tall fleet-map" aria-label=${t.nav.map}>
    <${MapPicture} view=${view} shown=${shown} /> ${controls(view, section)} ${credit(view)}
    ${together(entries, view)}
  </section>`;
}

/** The middle of the smallest box around these places. */
function middleOf(places: readonly Place[]): Place | undefined {
  if (places.length === 0) return undefined;
  const middle = (all: readonly number[]) => (Math.min(...all) + Math.max(...all)) / 2;
  return { lat: middle(places.map(({ lat }) => lat)), lon: middle(places.map(({ lon }) => lon)) };
}

function marksOf(placed: readonly Placed[], frame: Frame): readonly Mark[] {
  const visible = placed
    .map((each) => ({ each, at: frame.toPicture(each) }))
    .filter(
      ({ at: [x, y] }) => x > -near_px && y > -near_px && x < frame.w + near_px && y < frame.h + near_px,
    );
  return groupsOf(visible, () => near_px).map((group) => {
    const [x, y] = group[0]?.at ?? [0, 0];
    return { x, y, placed: group.map(({ each }) => each) };
  });
}

function labelOf({ placed }: Mark) {
  const text = placed.length === 1 ? plain(placed[0]?.entry.kit.name ?? '') : t.kits.together(placed.length);
  return text.length > label_chars_max ? `${text.slice(0, label_chars_max - 1)}…` : text;
}

interface Around {
  readonly frame: Frame;
  readonly section: Section;
  readonly view: View;
}

function marksView(marks: readonly Mark[], around: Around) {
  // The number in a mark of several says enough.
  const textOf = (mark: Mark) => (mark.placed.length === 1 ? labelOf(mark) : '');
  const wanted = marks.map((mark) => ({ x: mark.x, y: mark.y, text: textOf(mark), sub: '', rank: 1 }));
  const labels = placeLabels(wanted, around.frame);
  return marks.map((mark, i) => {
    const at = labels[i];
    const label =
      at && html`<text x=${at.x - mark.x} y=${at.y - mark.y} text-anchor=${at.anchor}>${textOf(mark)}</text>`;
    return markView(mark, label, around);
  });
}

function markView(mark: Mark, label: unknown, { section, view }: Around) {
  const { x, y, placed } = mark;
  const [first] = placed;
  const word = worst.find((each) => placed.some(({ entry }) => entry.judged.state === each)) ?? 'none';
  const isOne = placed.length === 1;
  const open = (event: Event) => {
    if (isOne) return;
    event.preventDefault();
    openMark(mark, section, view);
  };
  const ids = placed.map(({ entry }) => entry.kit.id);
  return html`<a
    key=${ids[0]}
    class=${isOne ? '' : 'cluster'}
    transform=${`translate(${x.toFixed(1)} ${y.toFixed(1)})`}
    href=${isOne ? addressOf('overview', first?.entry.kit.id ?? null) : '#/kits'}
    aria-label=${`${labelOf(mark)}: ${t.state[word]}`}
    onClick=${open}
  >
    <circle class="touch" r="22" />${
      isOne
        ? html`<use
            class=${`mark-${word}`}
            href=${`#s-${shapes[word]}`}
            x="-8"
            y="-8"
            width="16"
            height="16"
          />`
        : html`<circle class=${`mark-${word}`} r="14" /><text
              class="n"
              aria-hidden="true"
              y="4.5"
              text-anchor="middle"
              >${placed.length}</text
            >`
    }${label}
  </a>`;
}

/** Zooms to the kits of a mark; those in one place are listed. */
function openMark({ placed }: Mark, section: Section, view: View) {
  const { choices, act } = view;
  const middle = middleOf(placed);
  if (!middle) return;
  const far_m = Math.max(...placed.map((each) => bearingOf(middle, each).distance_m));
  choices.together = far_m < same_m ? placed.map(({ entry }) => entry.kit.id) : [];
  if (far_m >= same_m) {
    zoomBy(view, section, Math.max(1, Math.log2(section.range_m / (far_m * 1.2))));
    choices.map = { ...choices.map, pan: middle };
  }
  act.changed();
}

function together(entries: readonly Entry[], { choices, act }: View) {
  if (choices.together.length === 0) return '';
  const shown = entries.filter(({ kit }) => choices.together.includes(kit.id));
  const close = () => act.choose({ together: [] });
  return html`<div class="card together">
    <header>
      <h2 class="sec">${t.kits.together(shown.length)}</h2>
      <button type="button" class="icon-btn" aria-label=${t.close} onClick=${close}>${icon('x')}</button>
    </header>
    <ul class="rows">
      ${shown.map(
        ({ kit, judged }) =>
          html`<li key=${kit.id}>
            <a class="choose-row" href=${addressOf('overview', kit.id)}
              ><b>${name(kit.name)}</b>${state(judged.state)}</a
            >
          </li>`,
      )}
    </ul>
  </div>`;
}
