/** Parameters of the simulated vehicle, and its side of the parameter protocol. */
import { bitsOf, valueOf } from '../commands/parameters.ts';
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

type Named = readonly (readonly [name: string, SimParameter])[];

const usual: Named = [
  ['BATT_CAPACITY', { value: 5_200, isInteger: true }],
  ['BATT_LOW_VOLT', { value: 14.4, isInteger: false }],
  ['FENCE_ENABLE', { value: 0, isInteger: true }],
  ['LOG_OFFSET', { value: -1, isInteger: true }],
  ['RCMAP_THROTTLE', { value: 3, isInteger: true }],
  ['RTL_ALT', { value: 1_500, isInteger: false }],
  ['SYSID_THISMAV', { value: 1, isInteger: true }],
];

const own: Readonly<Record<'ardupilot' | 'px4', Named>> = {
  ardupilot: [
    ['FENCE_ACTION', { value: 1, isInteger: true }],
    ['FENCE_ALT_MAX', { value: 100, isInteger: false }],
    ['FENCE_RADIUS', { value: 300, isInteger: false }],
    ['FENCE_TYPE', { value: 7, isInteger: true }],
  ],
  px4: [
    ['GF_ACTION', { value: 2, isInteger: true }],
    ['GF_MAX_HOR_DIST', { value: 0, isInteger: false }],
    ['GF_MAX_VER_DIST', { value: 0, isInteger: false }],
    ['RTL_RETURN_ALT', { value: 60, isInteger: false }],
  ],
};

export class SimParameters {
  readonly stored: Map<string, SimParameter>;
  readonly #autopilot: 'ardupilot' | 'px4';
  readonly #send: (value: Messages['PARAM_VALUE']) => void;
  #next = Number.POSITIVE_INFINITY;

  constructor(autopilot: 'ardupilot' | 'px4', send: (value: Messages['PARAM_VALUE']) => void) {
    this.stored = new Map([...usual, ...own[autopilot]]);
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
  }: Extract<Decoded, { readonly name: 'PARAM_REQUEST_LIST' | 'PARAM_REQUEST_READ' | 'PARAM_SET' }>): void {
    if (name === 'PARAM_SET') this.#set(fields);
    else if (name === 'PARAM_REQUEST_LIST') this.#next = 0;
    else if (fields.param_index >= 0) this.#sendAt(fields.param_index, fields.param_index);
    else {
      const index = [...this.stored.keys()].indexOf(fields.param_id);
      this.#sendAt(index, this.#autopilot === 'px4' ? index : no_index);
    }
  }

  #set({ param_id, param_value, param_type }: Messages['PARAM_SET']): void {
    const at = [...this.stored.keys()].indexOf(param_id);
    const known = this.stored.get(param_id);
    if (!known) return;
    const value = valueOf({ param_value, param_type }, this.#autopilot) ?? known.value;
    this.stored.set(param_id, { ...known, value: known.isInteger ? Math.trunc(value) : value });
    this.#sendAt(at, this.#autopilot === 'px4' ? at : no_index);
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
