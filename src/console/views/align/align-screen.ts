/** Aligns an antenna: one signal, large, with the best that was reached, and a tone that rises with it. */
import { feedFreshness, partFreshness } from '../../world/age.ts';
import { isRecord, listIn, textIn } from '../../json.ts';
import { plain } from '../../world/text.ts';
import { number } from '../../units.ts';
import { addressOf } from '../../world/route.ts';
import { fieldOf } from '../../world/world.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { age, lostBox, name } from '../parts/marks.ts';
import { beep } from '../parts/sound.ts';
import { Component } from 'preact';
import type { Freshness, LiveAsset, View } from '../../types.d.ts';

/** Something that is aligned by its signal. */
interface Source {
  readonly key: string;
  readonly title: string;
  readonly value: number;
  readonly unit: string;
  /** The ends of its scale: unusable, and as good as it gets. */
  readonly scale: readonly [low: number, high: number];
  /** Beside the number. */
  readonly more: string;
  readonly freshness: Freshness;
}

const scales = {
  radio: [-95, -45],
  lte: [-120, -75],
  rssi: [-110, -55],
  drone: [0, 254],
  share: [80, 100],
} as const;

/** Everything of the kit that reports a signal. */
function sourcesOf(view: View): readonly Source[] {
  const assets = [...view.world.assets.values()];
  return [...assets.flatMap((asset) => ofAsset(asset, view)), ...ofDishes(view)];
}

function ofAsset(asset: LiveAsset, view: View): readonly Source[] {
  const feeds = view.world.feeds.get(asset.id) ?? {};
  const freshnessOf = (feed: string) => feedFreshness(asset, feed, view);
  const peers = listIn(fieldOf(feeds['mesh'], 'neighbours')).filter(isRecord);
  const modems = listIn(fieldOf(feeds['cellular'], 'modems')).filter(isRecord);
  const droneRssi = fieldOf(feeds['radio'], 'rssi');
  return [
    ...peers.flatMap((peer) =>
      source(peer['rssi'], {
        key: `${asset.id} ${String(peer['mac'])}`,
        title: `${asset.name}: ${plain(peer['name'] ?? peer['mac'])}`,
        unit: 'dBm',
        scale: scales.radio,
        more: snrText(peer['snr_db']),
        freshness: freshnessOf('mesh'),
      }),
    ),
    ...modems.flatMap((modem) => {
      const hasRsrp = typeof modem['rsrp_dbm'] === 'number';
      return source(hasRsrp ? modem['rsrp_dbm'] : modem['rssi_dbm'], {
        key: `${asset.id} ${textIn(modem['name'])}`,
        title: [textIn(modem['name']), textIn(modem['operator'])].filter(Boolean).join(', '),
        unit: 'dBm',
        scale: hasRsrp ? scales.lte : scales.rssi,
        more: [hasRsrp ? 'RSRP' : 'RSSI', textIn(modem['band']), snrText(modem['snr_db'])]
          .filter(Boolean)
          .join(', '),
        freshness: freshnessOf('cellular'),
      });
    }),
    ...(asset.type === 'drone'
      ? source(droneRssi, {
          key: `${asset.id} radio`,
          title: asset.name,
          unit: '',
          scale: scales.drone,
          more: t.drone.rssi,
          freshness: freshnessOf('radio'),
        })
      : []),
  ];
}

/** A dish reports no strength: what is answered through it counts. */
function ofDishes(view: View): readonly Source[] {
  return (view.world.kit?.wans ?? [])
    .filter(({ type }) => type === 'satellite')
    .flatMap(({ name: wire, isp, packet_loss_pct: loss, latency_ms }) =>
      source(typeof loss === 'number' ? 100 - loss : undefined, {
        key: `link ${wire}`,
        title: isp ? `${isp} (${wire})` : wire,
        unit: '%',
        scale: scales.share,
        more: [t.align.answered, typeof latency_ms === 'number' ? `${number(latency_ms)}\u00a0ms` : '']
          .filter(Boolean)
          .join(', '),
        freshness: partFreshness('wans', view),
      }),
    );
}

function source(value: unknown, about: Omit<Source, 'value'>): readonly Source[] {
  return typeof value === 'number' ? [{ ...about, value }] : [];
}

function snrText(db: unknown) {
  return typeof db === 'number' ? t.radio.snr(number(db)) : '';
}

export function alignScreen(view: View) {
  const { choices, act } = view;
  const sources = sourcesOf(view);
  const chosen = sources.find(({ key }) => key === choices.aligned) ?? sources[0];
  const choose = ({ currentTarget }: Event & { currentTarget: HTMLSelectElement }) =>
    act.choose({ aligned: currentTarget.value });
  return {
    heading: { title: t.nav.align, back: addressOf('links', choices.kit_id) },
    body: html`<div class="page align">
      ${lostBox(view)}
      ${
        chosen
          ? html`<label class="input"
                ><span>${t.align.source}</span>
                <select value=${chosen.key} onChange=${choose}>
                  ${sources.map(({ key, title }) => html`<option key=${key} value=${key} selected=${key === chosen.key}>${plain(title)}</option>`)}
                </select>
              </label>
              <${Meter} key=${chosen.key} source=${chosen} />`
          : html`<section key="none" class="card"><p class="empty">${t.align.none}</p></section>`
      }
    </div>`,
  };
}

/** Both hands are at the antenna: a phone would be dark, and its tone silent, within half a minute. Browsers offer it over HTTPS. */
async function keepScreenOn(signal: AbortSignal) {
  if (document.hidden) return;
  try {
    const lock = await navigator.wakeLock.request('screen');
    const release = () => void lock.release();
    if (signal.aborted) release();
    else signal.addEventListener('abort', release, { once: true });
  } catch {
    // Plain HTTP, or a phone that saves its battery.
  }
}

const tone_low_hz = 300;
const tone_high_hz = 1_500;

class Meter extends Component<{ source: Source }, { hasTone: boolean; best: number }> {
  override state: { hasTone: boolean; best: number } = {
    hasTone: false,
    best: this.props.source.value,
  };
  #time_ms = 0;
  #mounted = new AbortController();

  override componentDidMount() {
    const { signal } = this.#mounted;
    const lock = () => void keepScreenOn(signal);
    // The browser lets go of it while another app is in front.
    document.addEventListener('visibilitychange', lock, { signal });
    lock();
  }

  override componentWillUnmount() {
    this.#mounted.abort();
  }

  override componentDidUpdate() {
    const { value, freshness } = this.props.source;
    const time_ms = performance.now() - (freshness.age_ms ?? 0);
    // A new report, not another drawing of the one before.
    const isNew = time_ms - this.#time_ms > 200;
    if (!isNew || freshness.isOld) return;
    this.#time_ms = time_ms;
    if (value > this.state.best) this.setState({ best: value });
    if (this.state.hasTone) beep(tone_low_hz + (tone_high_hz - tone_low_hz) * this.#share(value));
  }

  /** Where it lies on its scale, from 0 to 1. */
  #share(value: number) {
    const [low, high] = this.props.source.scale;
    return Math.max(0, Math.min(1, (value - low) / (high - low)));
  }

  #switch = () => {
    this.setState({ hasTone: !this.state.hasTone });
    if (!this.state.hasTone) beep(tone_high_hz, 0.08);
  };

  #reset = () => this.setState({ best: this.props.source.value });

  override render() {
    const { source } = this.props;
    const { hasTone, best } = this.state;
    const { value, unit, more, freshness } = source;
    const share = this.#share(value);
    return html`<section
      key="meter"
      class=${freshness.isOld ? 'card pad meter-card is-old' : 'card pad meter-card'}
      aria-label=${t.nav.align}
    >
      <p class="big" role="status"><span>${number(value)}</span><small>${unit}</small></p>
      <p class="cap">${name(more)} ${age(freshness)}</p>
      <svg class="meter" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
        <rect class="all" width="100" height="8" />
        <rect width=${share * 100} height="8" />
        <rect class="best" x=${Math.min(99, this.#share(best) * 100)} width="1" height="8" />
      </svg>
      <p>${t.align.best(`${number(best)}${unit && `\u00a0${unit}`}`)}</p>
      <div class="answers">
        <button type="button" class="btn plain" onClick=${this.#reset}>${t.align.reset}</button>
        <button type="button" class="btn main" aria-pressed=${String(hasTone)} onClick=${this.#switch}>
          ${hasTone ? t.align.silent : t.align.tone}
        </button>
      </div>
      <p class="cap">${t.align.hint}</p>
    </section>`;
  }
}
