/** What a broker does not offer, as its CONNACK or its refusal shows, and how the kit gets by without it. */
import { codeOfMqtt5 } from '../mqtt/codes.ts';
import type { Session } from '../mqtt/session.ts';
import type { Problems } from './problems.ts';
import { texts } from './texts.ts';

const code = { packet_too_large: 0x95, retain_not_supported: 0x9a, qos_not_supported: 0x9b } as const;

export class BrokerLimits {
  readonly #problems: Problems;
  #retains = true;
  #compact = false;

  constructor(problems: Problems) {
    this.#problems = problems;
  }

  /** Whether the will may be retained. */
  get retains(): boolean {
    return this.#retains;
  }

  /** Whether the will must be as small as possible. */
  get compact(): boolean {
    return this.#compact;
  }

  /** Learns from a CONNACK that refused. */
  refused(reason_code: number): void {
    switch (codeOfMqtt5(reason_code)) {
      case code.retain_not_supported:
        this.#retains = false;
        this.#noRetain();
        break;
      case code.packet_too_large:
        this.#compact = true;
        break;
      case code.qos_not_supported:
        this.#noQos();
        break;
      default:
        break;
    }
  }

  /** Learns from a CONNACK that accepted. False: the broker cannot serve the kit. */
  accepted(session: Pick<Session, 'retains' | 'qos_max' | 'announces_no_room'>): boolean {
    this.#retains = session.retains;
    if (session.retains) this.#problems.clear('retain');
    else this.#noRetain();
    if (session.qos_max === 0) {
      this.#noQos();
      return false;
    }
    this.#problems.clear('qos');
    if (session.announces_no_room) {
      this.#problems.note('receive_maximum', {
        sentence:
          'broker announced Receive Maximum 0, which MQTT 5 forbids: messages are sent one at a time; correct its settings',
        line: texts.receive_maximum_0,
        facts: {},
        lasts: 'until_cleared',
      });
    } else this.#problems.clear('receive_maximum');
    return true;
  }

  #noRetain(): void {
    this.#problems.note('retain', {
      sentence:
        'broker does not keep retained messages: a cloud that connects later learns of this kit by down/sync only; allow retained messages',
      line: texts.no_retain,
      facts: {},
      lasts: 'until_cleared',
    });
  }

  #noQos(): void {
    this.#problems.note('qos', {
      sentence:
        'broker supports QoS 0 only: nothing is sent, since it would get lost; allow QoS 1 at the broker',
      line: texts.qos_0_only,
      facts: {},
      lasts: 'until_cleared',
    });
  }
}
