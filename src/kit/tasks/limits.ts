/** The limits of a task: waiting, holding and reporting. */

export interface TaskLimits {
  /** Tasks of one asset that wait for their turn. A safety command does not count: it pre-empts them. */
  readonly waiting_per_asset_max: number;
  /** Tasks of all assets that wait for their turn. */
  readonly waiting_max: number;
}

export const task_limits: TaskLimits = { waiting_per_asset_max: 16, waiting_max: 256 };

/** A dispatch as JSON text, and a result as JSON text. */
export const dispatch_chars_max = 64 * 1024;
export const result_chars_max = 64 * 1024;
/** What an operator reads; longer texts of devices are cut. */
export const sentence_chars_max = 1_000;
/** Faults of a payload or a dispatch that are named in one sentence. */
export const faults_named_max = 3;

/** No task lives longer, whatever deadline its dispatch names. */
export const deadline_max_ms = 24 * 3_600_000;
/** A dispatch from further ahead than this means that the clocks of the kit and the cloud disagree. */
export const clock_disagreement_ms = 5 * 60_000;

/** A handler has so long to stop after its deadline; then the asset is free again. */
export const deadline_grace_ms = 2_000;
/** A handler has so long to stop for a safety command; then the safety command starts anyway. */
export const supersede_grace_ms = 1_000;

/** Progress of one task is reported at most this often. */
export const progress_every_ms = 1_000;

/** Ends of tasks that wait for a disk that refuses. Beyond it dispatches are left unanswered. */
export const unrecorded_max = 1_000;
