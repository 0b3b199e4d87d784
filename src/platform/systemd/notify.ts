/** Reports the state of the service to systemd: sd_notify(3), without libsystemd and without a child process. */
import { type DatagramSender, openDatagramSender } from './unix-datagram.ts';

export type Notifier = Awaited<ReturnType<typeof openNotifier>>;

interface NotifyEnvironment {
  readonly [name: string]: string | undefined;
}

/** What systemd did not take at once is offered again this often. */
const again_ms = 200;
/** States that wait for systemd; the oldest go first, since the newest is what counts. */
const waiting_max = 16;
const status_chars_max = 500;

/** Opens the notifier; without `NOTIFY_SOCKET` it does nothing and loads nothing. The socket is closed when `signal` aborts. */
export async function openNotifier(
  env: NotifyEnvironment,
  { pid, signal }: { readonly pid: number; readonly signal: AbortSignal },
) {
  const path = env['NOTIFY_SOCKET'] ?? '';
  const isHeard = /^[/@]./.test(path);
  const send = isHeard ? stateSender(await openDatagramSender(path), signal) : () => undefined;
  let shown = '';
  return {
    /** Extends the time limit of the start, from now. */
    extendStart: (by_ms: number): void => send(`EXTEND_TIMEOUT_USEC=${by_ms * 1_000}`),
    /** Everything runs: after the start, and after a reload. */
    ready: (): void => send('READY=1'),
    /** One line for `systemctl status`; sent only when it changes. */
    status(line: string): void {
      const text = line.replaceAll(/\s+/g, ' ').slice(0, status_chars_max);
      if (text !== shown) send(`STATUS=${text}`);
      shown = text;
    },
    reloading: (): void => send(`RELOADING=1\nMONOTONIC_USEC=${process.hrtime.bigint() / 1_000n}`),
    stopping: (): void => send('STOPPING=1'),
    /** The service makes progress. */
    alive: (): void => send('WATCHDOG=1'),
    /** Without a call of `alive` for so long systemd restarts the service; null: it does not watch. */
    watchdog_ms: isHeard ? watchdogTime(env, pid) : null,
  };
}

/** Sends in order; while systemd is too busy to take a datagram, what follows waits behind it. */
function stateSender(sender: DatagramSender, signal: AbortSignal): (state: string) => void {
  const waiting: string[] = [];
  let timer: NodeJS.Timeout | undefined;
  const sendWaiting = (): void => {
    clearTimeout(timer);
    while (waiting[0] !== undefined && sender.send(Buffer.from(waiting[0])) !== 'EAGAIN') waiting.shift();
    if (waiting.length > 0) timer = setTimeout(sendWaiting, again_ms).unref();
  };
  const end = (): void => {
    clearTimeout(timer);
    sender.close();
  };
  signal.addEventListener('abort', end, { once: true });
  return (state) => {
    if (signal.aborted) return;
    if (waiting.length >= waiting_max) waiting.shift();
    waiting.push(state);
    sendWaiting();
  };
}

/** sd_watchdog_enabled(3): meant for this process, and a number. */
function watchdogTime(env: NotifyEnvironment, pid: number): number | null {
  const usec = Number(env['WATCHDOG_USEC']);
  if (!(usec > 0) || !Number.isFinite(usec)) return null;
  const watched = env['WATCHDOG_PID'];
  return watched === undefined || watched === String(pid) ? usec / 1_000 : null;
}
