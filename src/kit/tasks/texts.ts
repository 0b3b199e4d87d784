/** Sentences of the tasks that people read; tests refer to them by name. */
export const texts = {
  late_result: 'handler settled after its task ended; result ignored',
  no_task_id: 'dispatch without a task id in its topic ignored',
  too_many_results: 'dispatch ignored; too many task results wait for the disk',
  cancel_ignored: 'cancel ignored; the task is not open',
  result_not_recorded: 'task result not recorded; retrying',

  // Why a task failed: `result.error`
  asset_offline: (name: string) => `${name} is offline`,
  cancelled_early: 'cancelled before it started',
  cancelled_running: 'cancelled while running',
  superseded_by: (by: string) => `superseded by ${by}`,
  no_answer: 'no answer before the deadline, outcome unknown',
  stopped_early: 'the connector stopped before it started',
  interrupted_by_stop: 'interrupted by a stop of the connector, outcome unknown',
  restart_unreadable: 'the kit restarted and cannot read the dispatch',
  asset_full: (waiting: number) => `too many tasks waiting: ${waiting} for this asset`,
  kit_full: (waiting: number) => `too many tasks waiting: ${waiting} on this kit`,

  // Why a dispatch is too late, or may be
  expired_early: 'expired: its deadline passed before it started',
  expired_retained: 'expired: a retained dispatch is refused, since the broker repeats it at each connect',
  expired_at_creation: 'expired: its deadline is not after its creation',
  expired_ago: (late: string, by: string) => `expired: its deadline passed ${late} ago ${by}`,
  expired_unknown:
    'expired: the kit restarted and its clock is not set, so whether the task is in time is unknown',
  clocks_disagree: (ahead: string) =>
    `the clocks of the kit and the cloud disagree: the dispatch was created ${ahead} in the future`,
  clock_not_set: (risk: string) =>
    `the kit's clock is not set, so whether this ${risk}-risk command is stale is unknown`,

  // Why a dispatch cannot be read
  dispatch_too_long: (chars: number, chars_max: number) =>
    `the dispatch has ${chars} characters; the limit is ${chars_max}`,
  dispatch_not_understood: (fault: string) => `the dispatch is invalid: ${fault}`,
  dispatch_not_json: (reason: string) => `the dispatch is not JSON: ${reason}`,
  other_task_id: (inside: string, topic: string) =>
    `task_id: ${inside} in the dispatch, ${topic} in the topic`,

  // Why a result is reported without its body
  result_not_json: (reason: string) => `the result cannot be written as JSON: ${reason}`,
  result_too_long: (chars: number, chars_max: number) =>
    `the result has ${chars} characters of JSON; at most ${chars_max} are reported`,
  result_no_object: 'the result is not a JSON object',

  // How the handler was stopped
  cancelled: 'the task was cancelled',
  superseded: 'a safety command replaced the task',
  deadline_passed: 'the deadline of the task has passed',
  stopping: 'the connector is stopping',
  stopping_refused: 'the connector is stopping and accepts no tasks',
  /** It is unknown whether the device carried out the command. */
  interrupted: 'interrupted by restart, outcome unknown',
  /** Follows the error of a repeated run: the earlier run may have carried out the command. */
  earlier_interrupted: 'an earlier run was interrupted by restart, outcome unknown',
  device_invalid: (fault: string) => `invalid reply from the device: ${fault}`,
  no_reason: 'the command failed and gave no reason',
  not_recorded: (reason: string) => `the kit cannot record tasks now: ${reason}`,
  /** Progress note for a result that cannot be recorded. */
  not_final: (reason: string, result: string) =>
    `not final, since the kit cannot record it${reason && ` (${reason})`}: ${result}`,
} as const;
