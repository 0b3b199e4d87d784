/** Tap to fly: the target on the map, what it means, and the button that is held. Nothing is sent before the hold. */
import { bearingOf, type Place } from '../../world/geo.ts';
import { breachOf, fly_command, targetOf } from '../../world/places.ts';
import { field, own } from '../../json.ts';
import { label } from '../../world/text.ts';
import { distanceText, heightIn, measureText } from '../../units.ts';
import { numberOf } from '../../world/world.ts';
import { t } from '../../words/words.ts';
import { lockReason, riskMark } from '../command/about.ts';
import { outcome } from '../command/command-view.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icon.ts';
import type { CommandDefinition, LiveAsset, View } from '../../types.d.ts';

const speed_assumed_mps = 6;
const step_m = 5;
const height_default_m = 30;

function flyCommand(asset: LiveAsset, view: View): CommandDefinition | undefined {
  return view.world.commands.get(asset.id)?.find((command) => command.name === fly_command);
}

export function flyCard(asset: LiveAsset, view: View) {
  const command = flyCommand(asset, view);
  if (!command) return '';
  const found = targetOf(asset, view);
  if (!found) return waiting(asset, view, command);
  const { target, from } = found;
  const height = heightOf(asset, command, view);
  const locked = lockReason(view, asset);
  const isKnown = height.alt_m !== undefined;
  const isLocked = locked !== undefined || !isKnown;
  const order = {
    asset,
    command,
    payload: { lat: round(target.lat), lon: round(target.lon), alt_m: height.alt_m ?? 0 },
  };
  const ask = () => (isLocked ? undefined : view.act.order(order));
  return html`<section key="fly" class="card pad fly" aria-labelledby="fly-title">
    <div class="head">
      <h2 class="title" id="fly-title">${t.fly.title}</h2>
      ${riskMark(command)}
    </div>
    <p class="cap">${wayText(from, target)}</p>
    ${fenceText(asset, view)}
    ${isKnown ? stepper({ ...height, alt_m: height.alt_m ?? 0 }, view, asset) : html`<p class="lock">${t.fly.heightNotKnown}</p>`}
    ${locked !== undefined && html`<p class="lock">${locked}</p>`}
    <div class="answers">
      <button type="button" class="btn plain" onClick=${() => view.act.choose({ target: null })}>
        ${t.cancel}
      </button>
      <button type="button" class="btn main" aria-disabled=${String(isLocked)} onClick=${ask}>
        ${t.fly.ask}
      </button>
    </div>
  </section>`;
}

/** How far, in which direction, and about how long. */
function wayText(from: Place, target: Place) {
  const { distance_m, bearing } = bearingOf(from, target);
  const degrees = String(Math.round(bearing) % 360).padStart(3, '0');
  return t.fly.about({
    distance: distanceText(distance_m),
    bearing: `${degrees}°`,
    time_s: Math.round(distance_m / speed_assumed_mps),
  });
}

/** No feed reports the shape of the fence, so it is not known whether the target lies inside: a question follows. */
function fenceText(asset: LiveAsset, view: View) {
  const breach = breachOf(asset.id, view);
  return html`<p class="fault" role="alert">
    ${breach !== undefined && `${t.fly.breached(own(t.fly.breach, breach) ?? label(breach))} `}${t.fly.fenceUnknown}
  </p>`;
}

/** Before a target: how to set one, and what became of the last. */
function waiting(asset: LiveAsset, view: View, command: CommandDefinition) {
  const last = outcome(asset, command, view);
  const isLocked = lockReason(view, asset) !== undefined;
  if (isLocked && !last) return '';
  return html`<section key="fly" class="card pad fly-hint">
    ${!isLocked && html`<p class="cap">${icon('target', 's')} ${t.fly.hint}</p>`}
    ${last && html`<div class="outcome" role="status">${last}</div>`}
  </section>`;
}

interface Limits {
  readonly min: number;
  readonly max: number;
  readonly datum: 'relative' | 'amsl' | 'ellipsoid' | 'unknown';
}

/**
 * The height to send, in the command's own datum and within the limits of its schema: that of the drone where it is known
 * in this datum. Undefined: no height can be proposed that would not risk the ground.
 */
function heightOf(
  asset: LiveAsset,
  command: CommandDefinition,
  view: View,
): Limits & { readonly alt_m: number | undefined } {
  const schema = field(field(command.input_schema, 'properties'), 'alt_m');
  const datum = datumOf(schema);
  const limit = (key: string, otherwise: number) => {
    const value = field(schema, key);
    return typeof value === 'number' ? value : otherwise;
  };
  const min = limit('minimum', Number.NEGATIVE_INFINITY);
  const max = limit('maximum', Number.POSITIVE_INFINITY);
  const gps = view.world.feeds.get(asset.id)?.['gps'];
  const feeds = { relative: 'relative_alt_m', amsl: 'alt_amsl_m', ellipsoid: 'alt_m' };
  const now_m = datum === 'unknown' ? undefined : numberOf(gps, feeds[datum]);
  const typed = Number(view.choices.typed.get(`${asset.id} fly height`) ?? Number.NaN);
  const proposed =
    datum === 'relative'
      ? Math.max(now_m ?? 0, now_m === undefined || now_m < step_m ? height_default_m : 0)
      : now_m;
  const wanted = Number.isFinite(typed) ? typed : proposed;
  if (datum === 'unknown' || wanted === undefined) return { alt_m: undefined, min, max, datum };
  return { alt_m: Math.min(max, Math.max(min, Math.round(wanted))), min, max, datum };
}

/** The datum from the schema, else from the words of its description. */
function datumOf(schema: unknown): 'relative' | 'amsl' | 'ellipsoid' | 'unknown' {
  const datum = field(schema, 'x-kit-datum');
  if (datum === 'relative' || datum === 'amsl' || datum === 'ellipsoid') return datum;
  const description = field(schema, 'description');
  if (typeof description !== 'string') return 'unknown';
  if (/above home/u.test(description)) return 'relative';
  if (/sea level/u.test(description)) return 'amsl';
  return /ellipsoid/u.test(description) ? 'ellipsoid' : 'unknown';
}

function stepper(
  { alt_m, min, max, datum }: Limits & { readonly alt_m: number },
  view: View,
  asset: LiveAsset,
) {
  const step = (by: number) => () => {
    view.choices.typed.set(`${asset.id} fly height`, String(Math.min(max, Math.max(min, alt_m + by))));
    view.act.changed();
  };
  return html`<div class="step">
    <span>${t.fly.height[datum]}</span>
    <span class="steps"
      ><button type="button" class="icon-btn" aria-label=${t.fly.lower} onClick=${step(-step_m)}>
        ${icon('minus')}</button
      ><b>${measureText(heightIn(alt_m))}</b
      ><button type="button" class="icon-btn" aria-label=${t.fly.higher} onClick=${step(step_m)}>
        ${icon('plus')}
      </button></span
    >
  </div>`;
}

/** A degree of latitude is 111 km: seven digits are a centimetre. */
function round(degrees: number) {
  return Number(degrees.toFixed(7));
}
