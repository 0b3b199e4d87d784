/** What happens to tasks, for those who observe them: the activity log and the figures of this run. */
import type { JsonObject } from '../../contract/json.ts';
import type { TaskOrigin } from '../../contract/tasks.ts';

/** Ids and name are null when the dispatch could not be read. */
export interface ObservedTask {
  readonly id: string;
  readonly asset_id: string | null;
  readonly command_name: string | null;
  /** As it was dispatched; empty when it could not be read. */
  readonly payload: JsonObject;
  /** Undefined when it was journaled by a version that did not keep it. */
  readonly origin: TaskOrigin | undefined;
}

export type TaskActivity =
  /** It is journaled, and waits for its turn. */
  | { readonly kind: 'accepted'; readonly task: ObservedTask }
  /** Its start is journaled; its handler is called now. */
  | { readonly kind: 'started'; readonly task: ObservedTask }
  /** `ran_ms`: since its start in this run; null when it did not start. */
  | {
      readonly kind: 'completed';
      readonly task: ObservedTask;
      readonly ran_ms: number | null;
    }
  | {
      readonly kind: 'failed';
      readonly task: ObservedTask;
      readonly ran_ms: number | null;
      /** What the operator reads in `result.error`. */
      readonly error: string;
    };

/** Called once for each activity, in its order. Must not throw: the task would be left half way. */
export type ObserveTasks = (activity: TaskActivity) => void;
