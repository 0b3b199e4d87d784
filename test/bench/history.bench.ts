/** The history of the service: what storing costs, how much it takes, and how long a question takes. */
import { join } from 'node:path';
import { openStore } from '../../src/cloud/open-store.ts';
import { openPostgres } from '../../src/cloud/sql/postgres.ts';
import { openSqlite } from '../../src/cloud/sql/sqlite.ts';
import { diskMissing } from '../support/disk/disks.ts';
import { findProgram } from '../support/peers.ts';
import { type Postgres, startPostgres } from '../support/database/postgres.ts';
import type { Bench, BenchContext, Figure } from './figure.ts';
import { measureHistorical, measureLive } from './history/ingest.ts';
import { fill, makeTemplate } from './history/large-store.ts';
import { measureReading, type Waits } from './history/reading.ts';
import { bytesOf, measureGateway, measureSizes } from './history/size.ts';
import { measurePauses } from './history/pauses.ts';

const store_messages = 100_000_000;
const size_kits = 5;
const no_server = 'PostgreSQL is not installed';

async function run(context: BenchContext): Promise<readonly Figure[]> {
  const { calm } = context;
  await calm();
  const gateway = await gatewayFigure(context);
  if (findProgram('postgres') === undefined) return [gateway, skipped('live_per_s', no_server)];
  const server = await startPostgres({ durable: true });
  try {
    const stored = await ingestFigures(server, context);
    const sizes = await sizeFigures(server, context);
    const pauses = await pauseFigures(server, context);
    return [...stored, ...sizes, gateway, ...(await readFigures(server, context)), ...pauses];
  } finally {
    await server.stop();
  }
}

async function ingestFigures(server: Postgres, { long, say }: BenchContext): Promise<Figure[]> {
  const live = await measureLive(server, long ? 5 : 3);
  for (const [way, { per_s, cpu_us }] of Object.entries(live))
    say(`live, ${way}: ${Math.round(per_s)} messages/s, ${cpu_us.toFixed(1)} us`);
  const batches = await measureHistorical(server);
  const rate = 'messages/s';
  const cost = 'us of processor/msg';
  const against = 'the same without history';
  const { history, no_history } = live;
  return [
    { figure: 'live_per_s', value: history.per_s, unit: rate, against, against_value: no_history.per_s },
    { figure: 'live_cpu_us', value: history.cpu_us, unit: cost, against, against_value: no_history.cpu_us },
    { figure: 'historical_per_s', value: batches.per_s, unit: rate },
    { figure: 'historical_cpu_us', value: batches.cpu_us, unit: cost },
  ];
}

async function sizeFigures(server: Postgres, { say }: BenchContext): Promise<Figure[]> {
  const database = await openPostgres({ url: await server.newDatabase('sizes'), password: server.password });
  try {
    const { segments, compaction_us } = await measureSizes(database, size_kits);
    say(`${segments.toFixed(1)} bytes a message, ${compaction_us.toFixed(1)} us to compact it`);
    return [
      { figure: 'disk_bytes', value: segments, unit: 'bytes/msg in PostgreSQL', target: '<= 16' },
      {
        figure: 'compaction_us',
        value: compaction_us,
        unit: 'us of processor/msg',
      },
    ];
  } finally {
    await database.close();
  }
}

/** How long a commit waits beside a backlog that is divided, summed up and deleted. */
async function pauseFigures(server: Postgres, { dir }: BenchContext): Promise<Figure[]> {
  const url = await server.newDatabase('pauses');
  const figures: Figure[] = [];
  for (const [name, choice] of [
    ['postgres', { kind: 'postgres', url, password: server.password }],
    ['sqlite', { kind: 'sqlite', file: join(dir, 'pauses.db') }],
  ] as const) {
    const { store } = await openStore(choice);
    const { busy_max_ms, quiet_max_ms } = await measurePauses(store);
    await store.close();
    figures.push({
      figure: `commit_max_${name}_ms`,
      value: busy_max_ms,
      unit: 'ms, beside compaction',
      target: '<= 50 more',
      against: 'alone',
      against_value: quiet_max_ms,
    });
  }
  return figures;
}

async function gatewayFigure({ long }: BenchContext): Promise<Figure> {
  if (diskMissing()) return skipped('gateway_bytes', 'needs root and loop devices');
  return {
    figure: 'gateway_bytes',
    value: await measureGateway(long ? 48 : 24),
    unit: 'bytes/msg on the device',
    target: '<= 100',
  };
}

async function readFigures(server: Postgres, { dir, say }: BenchContext): Promise<Figure[]> {
  const template = await makeTemplate(Date.now());
  const url = await server.newDatabase('large');
  const shared = await openPostgres({ url, password: server.password });
  const kit_ids = await fill(shared, template, store_messages);
  const gb = (await bytesOf(shared, ['history', 'history_days'])) / 1e9;
  await shared.close();
  say(
    `${kit_ids.length} kits, ${(kit_ids.length * template.messages) / 1e6} million messages, ${gb.toFixed(2)} GB`,
  );
  const onServer = await measureReading(
    { kind: 'postgres', url, password: server.password },
    template,
    kit_ids,
  );
  const file = join(dir, 'large.db');
  const alone = openSqlite(file);
  const file_kit_ids = await fill(alone, template, store_messages);
  await alone.close();
  const onFile = await measureReading({ kind: 'sqlite', file }, template, file_kit_ids);
  const figure = (name: keyof Waits, target: string): Figure => ({
    figure: name,
    value: onServer[name],
    unit: 'ms',
    target,
    against: 'SQLite',
    against_value: onFile[name],
  });
  return [
    figure('series_30d_ms', '<= 50'),
    figure('track_24h_ms', '<= 100'),
    figure('events_30d_ms', '<= 300'),
    figure('page_ms', ''),
  ];
}

function skipped(figure: string, reason: string): Figure {
  return { figure, value: null, unit: '', skipped: reason };
}

export const bench: Bench = { name: 'history', run };
