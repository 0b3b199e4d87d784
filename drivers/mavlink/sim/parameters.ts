/** Parameters of the simulated vehicle, and its side of the parameter protocol. */
import { bitsOf } from '../commands/parameters.ts';
import type { Decoded, Messages } from '../wire/messages.ts';

export interface SimParameter {
  readonly value: number;
  readonly isInteger: boolean;
}

const int32 = 6;
const real32 = 9;
/** Sent in each step. */
const batch = 4;
/** Index of a parameter that was requested by its name, as ArduPilot sends it. */
const no_index = 65_535;

const usual: readonly (readonly [name: string, SimParameter])[] = [
  ['BATT_CAPACITY', { value: 5_200, isInteger: true }],
  ['BATT_LOW_VOLT', { value: 14.4, isInteger: false }],
  ['FENCE_ENABLE', { value: 0, isInteger: true }],
  ['LOG_OFFSET', { value: -1, isInteger: true }],
  ['RCMAP_THROTTLE', { value: 3, isInteger: true }],
  ['RTL_ALT', { value: 1_500, isInteger: false }],
  ['SYSID_THISMAV', { value: 1, isInteger: true }],
];

export class SimParameters {
  readonly stored = new Map<string, SimParameter>(usual);
  readonly #autopilot: 'ardupilot' | 'px4';
  readonly #send: (value: Messages['PARAM_VALUE']) => void;
  #next = Number.POSITIVE_INFINITY;

  constructor(autopilot: 'ardupilot' | 'px4', send: (value: Messages['PARAM_VALUE']) => void) {
    this.#autopilot = autopilot;
    this.#send = send;
  }

  /** Sends the list a part at a time. */
  tick(): void {
    for (let sent = 0; sent < batch && this.#next < this.stored.size; sent += 1) {
      this.#sendAt(this.#next, this.#next);
      this.#next += 1;
    }
  }

  /** What it does not have is not answered. */
  handle({
    name,
    fields,
  }: Extract<Decoded, { readonly name: 'PARAM_REQUEST_LIST' | 'PARAM_REQUEST_READ' }>): void {
    if (name === 'PARAM_REQUEST_LIST') this.#next = 0;
    else if (fields.param_index >= 0) this.#sendAt(fields.param_index, fields.param_index);
    else {
      const index = [...this.stored.keys()].indexOf(fields.param_id);
      this.#sendAt(index, this.#autopilot === 'px4' ? index : no_index);
    }
  }

  #sendAt(at: number, param_index: number): void {
    const [param_id, parameter] = [...this.stored][at] ?? [];
    if (param_id === undefined || !parameter) return;
    const { value, isInteger } = parameter;
    this.#send({
      param_id,
      param_index,
      param_count: this.stored.size,
      param_type: isInteger ? int32 : real32,
      param_value: bitsOf(value, isInteger && this.#autopilot === 'px4'),
    });
  }
}
