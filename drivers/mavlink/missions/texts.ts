/** Sentences about missions that people read; tests refer to them by name. */
export const texts = {
  reading: (vehicle: string, done: number, all: number) => `${vehicle}: ${done} of ${all} mission items read`,
  unanswered: (vehicle: string, what: string, requests: number) =>
    `${vehicle} did not answer ${requests} requests for ${what}; mission not read`,
  the_count: 'its mission',
  item: (seq: number) => `mission item ${seq}`,
  refused: (vehicle: string, result: string) => `${vehicle} refused to send its mission (${result})`,
  interrupted: (vehicle: string) =>
    `${vehicle} restarted or changed its link while its mission was read; try again`,
  stopped: (vehicle: string) => `the task was stopped before the mission of ${vehicle} was read`,
  too_late: (vehicle: string) => `the time of the task ended before the mission of ${vehicle} was read`,
  too_long: (vehicle: string, items: number, max: number) =>
    `${vehicle} has a mission of ${items} items; ${max} can be read`,
} as const;
