/**
 * The logs of an autopilot, and its side of the messages for them: of ArduPilot (AP_Logger_MAVLinkLogTransfer.cpp) numbers begin with 1, it
 * sends nothing while armed, and overhears requests while it sends; of PX4 (mavlink_log_handler.cpp) they begin with 0, and it knows no log
 * before it has listed them.
 */
import type { Decoded, Messages } from '../../drivers/mavlink/wire/messages.ts';

type LogMessage = Extract<
  Decoded,
  { readonly name: 'LOG_REQUEST_DATA' | 'LOG_REQUEST_END' | 'LOG_REQUEST_LIST' }
>;

/** What the logs need of the vehicle. */
interface Sender {
  readonly options: { readonly autopilot: 'ardupilot' | 'px4' };
  readonly flight: { readonly armed: boolean };
  send<K extends keyof Messages>(name: K, fields: Messages[K]): void;
  sendText(text: string): void;
}

const part_bytes = 90;

export function isLogMessage(message: Decoded): message is LogMessage {
  return message.name.startsWith('LOG_REQUEST_');
}

export class StoredLogs {
  /** Oldest first. */
  readonly logs: { time_utc: number; content: Uint8Array }[];
  /** Messages in each step of the vehicle. */
  pace = 20;
  /** Bytes of logs that were asked for, in order. */
  readonly asked: { readonly id: number; readonly ofs: number; readonly count: number }[] = [];
  /** How often it was told that nothing more is read. */
  ended = 0;
  #isListed = false;
  #sending: (() => boolean) | undefined;

  constructor(logs: StoredLogs['logs']) {
    this.logs = logs;
  }

  handle({ name, fields }: LogMessage, by: Sender): void {
    const isPx4 = by.options.autopilot === 'px4';
    if (name === 'LOG_REQUEST_END') {
      this.ended += 1;
      this.#sending = undefined;
      this.#isListed = false;
      return;
    }
    if (!isPx4 && by.flight.armed) return by.sendText('Disarm for log download');
    if (!isPx4 && this.#sending) return;
    if (name === 'LOG_REQUEST_LIST') this.#list(fields, isPx4 ? 0 : 1, by);
    else if (this.#isListed || !isPx4) this.#read(fields, isPx4 ? 0 : 1, by);
  }

  /** Sends as much as fits. */
  tick({ flight, options }: Sender): void {
    if (flight.armed && options.autopilot === 'ardupilot') return;
    for (let sent = 0; sent < this.pace && this.#sending; sent += 1)
      if (!this.#sending()) this.#sending = undefined;
  }

  #list({ start, end }: Messages['LOG_REQUEST_LIST'], first: number, by: Sender): void {
    this.#isListed = true;
    const num_logs = this.logs.length;
    const last = num_logs === 0 ? 0 : Math.min(end, first + num_logs - 1);
    let id = num_logs === 0 ? 0 : Math.max(start, first);
    this.#sending = () => {
      const { time_utc = 0, content = new Uint8Array() } = this.logs[id - first] ?? {};
      by.send('LOG_ENTRY', { time_utc, size: content.length, id, num_logs, last_log_num: last });
      id += 1;
      return id <= last;
    };
  }

  #read({ id, ofs, count }: Messages['LOG_REQUEST_DATA'], first: number, by: Sender): void {
    const log = this.logs[id - first];
    if (!log) return;
    this.asked.push({ id, ofs, count });
    const end = Math.min(ofs + count, log.content.length);
    let at = ofs;
    this.#sending = () => {
      const part = log.content.slice(at, Math.min(end, at + part_bytes));
      by.send('LOG_DATA', { id, ofs: at, count: part.length, data: [...part] });
      at += part.length;
      return part.length === part_bytes && at < end;
    };
  }
}
