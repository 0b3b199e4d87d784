/** Tiles of the kit: power, gateway, queue, speed. What the kit never reported is not drawn. */
import { partFreshness, queueFreshness } from '../../world/age.ts';
import { number, quantity, size } from '../../units.ts';
import { drainsIn } from '../../world/world.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { age, name } from '../parts/marks.ts';
import { spark } from '../parts/spark.ts';
import type { Freshness, View } from '../../types.d.ts';

export function tiles(view: View) {
  return html`<div class="tiles">${battery(view)}${gateway(view)}${queue(view)}</div>`;
}

interface Tile {
  id: string;
  title: string;
  freshness: Freshness;
  figure: unknown;
  text: unknown;
  chart?: unknown;
}

function tile({ id, title, freshness, figure, text, chart = '' }: Tile) {
  return html`<section
    class=${freshness.isOld ? 'card tile is-old' : 'card tile'}
    id=${id}
    aria-labelledby=${`${id}-title`}
  >
    <header>
      <h2 id=${`${id}-title`}>${title}</h2>
      ${age(freshness)}
    </header>
    <p class="num">${figure}</p>
    <p class="cap">${text}</p>
    ${chart}
  </section>`;
}

function battery(view: View) {
  const { kit, series } = view.world;
  if (!kit || typeof kit.battery !== 'number') return '';
  const { battery_charging } = kit;
  const charging = battery_charging ? t.tile.charging : t.tile.notCharging;
  return tile({
    id: 'battery',
    title: t.tile.battery,
    freshness: partFreshness('battery', view),
    figure: html`${Math.round(kit.battery)}<small>%</small>`,
    text: typeof battery_charging === 'boolean' ? charging : t.tile.chargingUnknown,
    chart: spark(series.get('battery') ?? [], {
      what: t.tile.battery,
      unit: '%',
      low: 0,
      top: 100,
      isAccent: true,
    }),
  });
}

function gateway(view: View) {
  const { kit, series } = view.world;
  if (!kit?.gateway) return '';
  const { name: title, cpu_pct, mem_pct } = kit.gateway;
  const memory = typeof mem_pct === 'number' ? t.tile.memory(quantity(mem_pct, '%')) : '';
  return tile({
    id: 'gateway',
    title: t.tile.gateway,
    freshness: partFreshness('gateway', view),
    figure:
      typeof cpu_pct === 'number'
        ? html`${Math.round(cpu_pct)}<small>% CPU</small>`
        : html`<small>${t.notReported}</small>`,
    text: memory === '' ? name(title) : memory,
    chart: spark(series.get('cpu') ?? [], { what: 'CPU', unit: '%', low: 0 }),
  });
}

function queue(view: View) {
  const { queue: report, series } = view.world;
  if (!report || typeof report.waiting_rows !== 'number') return '';
  const { waiting_rows, waiting_bytes } = report;
  return tile({
    id: 'queue',
    title: t.tile.queue,
    freshness: queueFreshness(view),
    figure: html`${number(waiting_rows)}<small>${t.tile.messages(waiting_rows)}</small>`,
    text: `${waiting_rows > 0 && waiting_bytes ? `${size(waiting_bytes)}. ` : ''}${drainText(view)}`,
    chart: spark(series.get('queue') ?? [], { what: t.tile.queue, unit: '', low: 0 }),
  });
}

/** When the queue will be empty, as a sentence. */
function drainText({ world, time_ms }: View): string {
  if (world.queue?.waiting_rows === 0) return t.tile.empty;
  const drain_ms = drainsIn(world, time_ms);
  return drain_ms === undefined ? t.tile.emptyUnknown : t.tile.emptyIn(drain_ms);
}
