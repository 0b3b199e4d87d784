/** A measured engine in a process of its own, told what to do by messages of its parent (`test/bench/support/subject.ts`). */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { every } from '../../../src/platform/time.ts';
import { flight, stamped } from '../../support/gps.ts';
import { monotonic_us } from '../../support/witness.ts';
import type { Engine } from '../engines/engine.ts';
import type { Load, Order, SubjectSpec, Told } from '../support/subject.ts';

/** Four looks at the clock for each message, but not more often nor less often than this. */
const pace_ticks = 4;
const pace_tick_min_ms = 2;
const pace_tick_max_ms = 250;
/** Handed over between two looks at how far the broker is. */
const closed_loop_burst = 100;

const spec = JSON.parse(process.argv[2] ?? '{}') as SubjectSpec;
const data = flight();
const loop = monitorEventLoopDelay({ resolution: 1 });
let sent = 0;

function tell(told: Told): void {
  process.send?.(told);
}

/** Each engine is loaded alone, so that none pays for the memory of another. */
async function open(): Promise<Engine> {
  const { choice, target } = spec;
  if (choice.kind === 'connector')
    return (await import('../engines/connector.ts')).openConnector(choice, target);
  if (choice.kind === 'mqttjs') return (await import('../engines/mqttjs.ts')).openMqttjs(choice, target);
  return (await import('../engines/fifo.ts')).openFifo(choice, target);
}

function sendOne(engine: Engine, { durabilities, data: form }: Load): void {
  const durability = durabilities[sent % durabilities.length] ?? 'lazy';
  const position = data.next().value;
  engine.send(durability, sent, form === 'stamped' ? stamped(position) : position);
  sent += 1;
}

/** As fast as the broker takes them, never more than `ahead_max` ahead of it. */
function runClosed(engine: Engine, load: Extract<Load, { kind: 'closed' }>, end: number): void {
  for (let burst = 0; burst < closed_loop_burst && sent < end; burst++) {
    if (sent - engine.acknowledged >= load.ahead_max) break;
    sendOne(engine, load);
  }
  if (sent < end) setImmediate(() => runClosed(engine, load, end));
  else tell({ kind: 'loaded', sent });
}

/** At a steady rate, whatever the broker does. */
function runPaced(engine: Engine, load: Extract<Load, { kind: 'paced' }>): void {
  const begin_ms = performance.now();
  const before = sent;
  const end = new AbortController();
  const tick_ms = 1000 / load.per_second / pace_ticks;
  every(Math.min(pace_tick_max_ms, Math.max(pace_tick_min_ms, tick_ms)), end.signal, () => {
    const elapsed_s = Math.min(load.seconds, (performance.now() - begin_ms) / 1000);
    while (sent - before < elapsed_s * load.per_second) sendOne(engine, load);
    if (elapsed_s < load.seconds) return;
    end.abort();
    tell({ kind: 'loaded', sent });
  });
}

async function closeAndLeave(engine: Engine): Promise<void> {
  await engine.close();
  tell({ kind: 'closed' });
  process.disconnect();
}

function obey(engine: Engine, order: Order): void {
  switch (order.kind) {
    case 'load':
      loop.reset();
      loop.enable();
      if (order.load.kind === 'closed') runClosed(engine, order.load, sent + order.load.messages);
      else runPaced(engine, order.load);
      return;
    case 'report':
      tell({
        kind: 'report',
        report: { sent, acknowledged: engine.acknowledged, loop_p99_ms: loop.percentile(99) / 1e6 },
      });
      return;
    case 'close':
      void closeAndLeave(engine);
  }
}

const begin_ms = performance.now();
const engine = await open();
process.on('message', (order: Order) => obey(engine, order));
process.on('disconnect', () => process.exit(0));
void engine.lost.then(() => tell({ kind: 'lost', at_us: monotonic_us() }));
tell({ kind: 'opened', took_ms: performance.now() - begin_ms });
