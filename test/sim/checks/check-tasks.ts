/** Tasks: each ran at most once, in time, and kit, service and machine agree on how it ended. */
import { jsonObject } from '../../../src/contract/json.ts';
import { channels } from '../../../src/contract/topics.ts';
import { not_sent } from '../../../src/platform/errors.ts';
import type { Run } from '../world/devices.ts';
import type { Order, Scene } from '../scene.ts';
import type { BufferTables, ServiceTables, TaskRow } from '../world/service-tables.ts';

/** Of the commands of a simulated device. */
const timeout_ms = 10_000;
/** The kit's clock and the cloud's are read at different moments. */
const slack_ms = 50;

type Say = (what: string) => void;

export function checkTasks(scene: Scene, tables: ServiceTables, buffer: BufferTables, say: Say): void {
  for (const order of scene.orders) {
    const runs = scene.devices.runs.filter(({ n }) => n === order.n);
    const task = order.task_id === undefined ? undefined : tables.tasks.get(order.task_id);
    checkRuns(scene, { order, runs, created_ms: task?.created_ms }, say);
    if (!task || scene.witness.hasLost(channels.task(task.task_id))) continue;
    const journaled = buffer.states.get(task.task_id);
    // A disk that took nothing knows nothing: the service finds out by itself, after a quarter of an hour.
    const isUnknown = journaled === undefined && runs.length === 0 && scene.kit.troubles.length > 0;
    if (!isUnknown) checkEnd(order, runs, task, say);
    if (journaled !== undefined) checkAgreement(order, journaled, task, say);
  }
}

function checkAgreement({ n }: Order, journaled: string, { status, revision }: TaskRow, say: Say): void {
  if (journaled !== 'completed' && journaled !== 'failed') say(`task ${n} is still ${journaled} at the kit`);
  else if (revision > 0 && journaled !== status)
    say(`task ${n} is ${journaled} at the kit and ${status} at the service`);
}

interface Ran {
  readonly order: Order;
  readonly runs: readonly Run[];
  readonly created_ms: number | undefined;
}

function checkRuns({ clock_stepped, setting }: Scene, { order, runs, created_ms }: Ran, say: Say): void {
  if (runs.length > 1 && order.command !== 'probe') say(`task ${order.n} ran ${runs.length} times`);
  if (clock_stepped || !setting.isSynced || created_ms === undefined) return;
  for (const { began_ms } of runs) {
    const late_ms = began_ms - created_ms - timeout_ms;
    if (late_ms > slack_ms) say(`task ${order.n} began ${Math.round(late_ms)} ms after its deadline`);
  }
}

function checkEnd({ n }: Order, runs: readonly Run[], task: TaskRow, say: Say): void {
  const { status } = task;
  const isDone = runs.some(({ ended }) => ended === 'done');
  if (status === 'completed' && !isDone) say(`task ${n} is completed, and the machine has not done it`);
  if (status === 'running') say(`task ${n} is still running at the service`);
  if (status === 'pending' && runs.length > 0)
    say(`task ${n} is pending at the service, and the machine ran`);
  if (status === 'failed') checkReason(n, runs, task, say);
}

/** What an operator reads of a failed task is true of the machine. */
function checkReason(n: number, runs: readonly Run[], { result, revision }: TaskRow, say: Say): void {
  const read = jsonObject.safeParse(JSON.parse(result)).data ?? {};
  const error = typeof read['error'] === 'string' ? read['error'] : '';
  const claims_nothing = error.includes(not_sent) || error.startsWith('not sent to the kit');
  if (claims_nothing && runs.length > 0) say(`task ${n} ran, and the service says: ${error}`);
  const isDone = runs.some(({ ended }) => ended === 'done');
  const is_vague = error.includes('outcome unknown') || error.includes('not answered');
  if (isDone && !is_vague && revision > 0) say(`task ${n} was done, and the service says: ${error}`);
}
