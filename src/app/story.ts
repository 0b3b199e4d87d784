/** Tells the log what only the messages show: commands that begin and end, and assets that are there for the first time. */
import type { z } from 'zod';
import { announcement } from '../contract/assets.ts';
import { taskReport } from '../contract/tasks.ts';
import type { Row } from '../outbox/row.ts';
import type { Log } from '../platform/log.ts';

export interface StoryAsset {
  readonly id: string;
  readonly key: string;
  readonly name: string;
  readonly driver: string;
}

/** Tasks whose state is remembered, so that a report that is sent again is not told again. */
const tasks_max = 1_000;

const appeared = announcement
  .pick({ asset_key: true, name: true, type: true, status: true, driver: true })
  .strip();
const reported = taskReport
  .pick({ task_id: true, asset_id: true, command_name: true, status: true, result: true })
  .strip();
type Reported = z.output<typeof reported>;

export class Story {
  readonly #log: Log;
  readonly #assets: () => readonly StoryAsset[];
  /** Keys of assets that were online in this run. */
  readonly #met = new Set<string>();
  /** When a task began; undefined once it is over. Oldest first. */
  readonly #tasks = new Map<string, number | undefined>();

  constructor(log: Log, assets: () => readonly StoryAsset[]) {
    this.#log = log;
    this.#assets = assets;
  }

  tell({ channel, body }: Pick<Row, 'channel' | 'body'>): void {
    const [kind, , more] = channel.split('/', 3);
    if (kind === 'task') this.#task(reported.parse(JSON.parse(body)));
    if (kind === 'asset' && more === undefined && body !== 'null') {
      this.#asset(appeared.parse(JSON.parse(body)));
    }
  }

  /** Drivers tell of what is lost and comes back; that it is there at all, nobody else says. */
  #asset({ asset_key, name, type, status, driver }: z.output<typeof appeared>): void {
    if (status === 'offline' || this.#met.has(asset_key)) return;
    this.#met.add(asset_key);
    this.#log.child({ driver }).info({ asset_key, name }, `${type} is online`);
  }

  #task(report: Reported): void {
    const { task_id, status, result } = report;
    const isKnown = this.#tasks.has(task_id);
    const began_ms = this.#tasks.get(task_id);
    const isOver = status !== 'running';
    if (isKnown && (began_ms === undefined || !isOver)) return;
    this.#remember(task_id, isOver ? undefined : performance.now());
    const { log, facts } = this.#about(report);
    const took_s = began_ms === undefined ? {} : { took_s: (performance.now() - began_ms) / 1_000 };
    const command = report.command_name ?? 'a command';
    if (status === 'running') log.info(facts, `${command} begins`);
    else if (status === 'completed') log.info({ ...facts, ...took_s }, `${command} is done`);
    else log.warn({ ...facts, ...took_s, reason: result['error'] }, `${command} failed`);
  }

  #about({ task_id, asset_id }: Reported): { readonly log: Log; readonly facts: object } {
    const asset = this.#assets().find(({ id }) => id === asset_id);
    const log = this.#log.child(asset ? { driver: asset.driver } : { part: 'tasks' });
    const whom = asset ? { asset_key: asset.key, name: asset.name } : {};
    return { log, facts: { task_id, ...whom } };
  }

  #remember(task_id: string, began_ms: number | undefined): void {
    this.#tasks.set(task_id, began_ms);
    const [oldest] = this.#tasks.keys();
    if (this.#tasks.size > tasks_max && oldest !== undefined) this.#tasks.delete(oldest);
  }
}
