/** Sentences of the tasks that people read; tests refer to them by name. */
export const texts = {
  late_result: 'handler settled after its task ended; result ignored',
  no_task_id: 'dispatch without a task id in its topic ignored',
  too_many_results: 'dispatch ignored; too many task results wait for the disk',
  cancel_ignored: 'cancel ignored; the task is not open',
  result_not_recorded: 'task result not recorded; retrying',
} as const;
