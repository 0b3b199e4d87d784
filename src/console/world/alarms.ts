/** The alarms of all kits of the key that are not over: on a socket of their own, which is open while somebody is logged in. */
import { ServiceLink } from './link.ts';
import type { Alarm, AlarmsFrame, Choices } from '../types.d.ts';

interface Parts {
  readonly onNews: () => void;
  /** Called for each that begins, or begins again. */
  readonly onNewAlarm: (alarm: Alarm) => void;
}

export class Alarms {
  #choices: Choices;
  #parts: Parts;
  #socket: ServiceLink<AlarmsFrame> | undefined;
  #list: Map<string, Alarm> = new Map();
  /** What was there when the page was opened is no news. */
  #isWhole = false;

  /** @param choices written to: the alarms */
  constructor(choices: Choices, parts: Parts) {
    this.#choices = choices;
    this.#parts = parts;
  }

  follow(isLoggedIn: boolean) {
    if (!isLoggedIn) {
      this.#socket?.close();
      this.#socket = undefined;
      return;
    }
    this.#socket ??= new ServiceLink(
      { path: '/api/ws', frame: { type: 'subscribe', alarms: true, kits: [] }, first: 'alarms' },
      { onFrame: (frame) => this.#take(frame) },
    );
  }

  #take(frame: AlarmsFrame) {
    if (frame.type !== 'alarms') return;
    const before = this.#list;
    this.#list = new Map(frame.first ? [] : before);
    for (const alarm of frame.alarms) {
      const known = before.get(alarm.id);
      if (this.#isWhole && alarm.state === 'open' && alarm.count > (known?.count ?? 0))
        this.#parts.onNewAlarm(alarm);
      this.#list.delete(alarm.id);
      if (alarm.state !== 'closed') this.#list.set(alarm.id, alarm);
    }
    this.#isWhole ||= !frame.more;
    this.#choices.alarms = [...this.#list.values()];
    this.#parts.onNews();
  }
}
