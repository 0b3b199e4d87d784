/** Sentences of the command line that people read; tests refer to them by name. */

const counted = (count: number, one: string, many: string): string =>
  `${count.toLocaleString('en')} ${count === 1 ? one : many}`;

export const texts = {
  unwritable: (path: string, reason: string, remedy: string) => `cannot write ${path} (${reason}); ${remedy}`,
  dir_unwritable: (dir: string, user: string, remedy: string) =>
    `${user} cannot write ${dir} (permission denied); ${remedy}, or choose another directory`,
  dir_not_made: (key: string, dir: string, reason: string) =>
    `${key}: cannot create ${dir} (${reason}); create it, or choose another directory`,
  kit: 'kit',
  task: 'task',
  unknown: 'unknown',
  /** A removed asset. */
  removed: 'removed',
  /** A cleared retained topic. */
  cleared: 'cleared',
  memory: ' % memory',
  assets: (count: number) => counted(count, 'asset', 'assets'),
  clients: (count: number) => counted(count, 'client', 'clients'),
  battery: (percent: number, charging: boolean | null | undefined) =>
    `battery ${Math.round(percent)} %${charging === true ? ' charging' : ''}`,
  skipped: (lines: number) =>
    `... ${counted(lines, 'line was', 'lines were')} skipped; this client reads too slowly`,
  last_report: (ago: string) => `last report, ${ago} ago:`,
  bundling: 'support bundle',
  bundle_steps: {
    config: 'reading the configuration',
    doctor: 'running the doctor',
    system: 'reading the system',
    daemon: 'querying the daemon',
    compress: 'compressing',
  },
  draining: 'draining',
  messages_left: (count: number) => `${counted(count, 'message', 'messages')} left`,
  per_second: (rate: number) => `${Math.round(rate).toLocaleString('en')}/s`,
  time_left: (time: string) => `${time} left`,
} as const;
