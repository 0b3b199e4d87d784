/** Sentences about parameters that people read; tests refer to them by name. */

export const texts = {
  reading: (vehicle: string, done: number, all: number) => `${vehicle}: ${done} of ${all} parameters read`,
  unanswered: (vehicle: string, requests: number) =>
    `${vehicle} did not answer ${requests} requests for its parameters`,
  none_answered: (vehicle: string, names: string, requests: number) =>
    `${vehicle} did not answer ${requests} requests for ${names}: it has no parameters of these names, or did not receive the requests`,
  unwritten: (vehicle: string, name: string) => `${vehicle} did not report ${name} after it was sent`,
  kept_other: (vehicle: string, name: string, { sent, held }: { sent: number; held: number | null }) =>
    `${vehicle} did not take ${name}: ${sent} was sent, and it has ${held ?? 'no number'}`,
  incomplete: (vehicle: string, done: number, all: number) =>
    `${vehicle} sent ${done} of its ${all} parameters; the others were not answered`,
  too_many: (vehicle: string, count: number, max: number) =>
    `${vehicle} has ${count} parameters; ${max} can be read at once, name the needed ones`,
  interrupted: (vehicle: string) =>
    `${vehicle} restarted, or another sender took its place, while its parameters were read`,
  too_late: (vehicle: string, done: number) =>
    `the deadline of the task passed after ${done} parameters of ${vehicle} were read`,
  stopped: (vehicle: string, done: number) =>
    `the task was stopped after ${done} parameters of ${vehicle} were read`,
  names_and_prefix: 'give names or prefix, not both',
} as const;
