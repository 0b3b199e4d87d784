/**
 * Recognises quadplanes of ArduPilot, which have the modes of Plane and may announce the type of a plane or of a multicopter
 * (Q_MAV_TYPE). An ArduCopter reports the VTOL state of a hovering multicopter too, so that a hovering vehicle that announces a
 * multicopter is asked for a parameter that only planes have.
 */
import type { Messages } from '../wire/messages.ts';
import { kindOf } from './kind.ts';

/** MAV_VTOL_STATE. */
const state_undefined = 0;
const state_multicopter = 3;
/** Whether the lift motors are in use; only ArduPlane has it. */
export const quadplane_parameter = 'Q_ENABLE';
/** At 20 % loss in each direction one of 3,500 quadplanes is missed, until it flies forward or restarts. */
const requests_max = 8;
const request_pause_ms = 1_000;
/** A float without its sign: 0 is 0. */
const magnitude_bits = 0x7f_ff_ff_ff;

export class QuadplaneEvidence {
  #is_quadplane = false;
  #is_in_doubt = false;
  #requests = 0;
  #requested_ms = Number.NEGATIVE_INFINITY;

  get isQuadplane(): boolean {
    return this.#is_quadplane;
  }

  /** Notes the VTOL state of an ArduPilot that announces this MAV_TYPE. */
  receiveState({ vtol_state }: Messages['EXTENDED_SYS_STATE'], mav_type: number): void {
    if (vtol_state === state_undefined) return;
    const kind = kindOf(mav_type);
    if (kind === 'copter' && vtol_state === state_multicopter) this.#is_in_doubt = true;
    else if (kind === 'copter' || kind === 'plane' || kind === 'vtol') this.#is_quadplane = true;
  }

  receiveParameter({ param_id, param_value }: Messages['PARAM_VALUE']): void {
    if (param_id !== quadplane_parameter) return;
    this.#requests = requests_max;
    if ((param_value & magnitude_bits) !== 0) this.#is_quadplane = true;
  }

  /** Whether the parameter is to be requested now. */
  isDue(now_ms: number): boolean {
    if (!this.#is_in_doubt || this.#is_quadplane || this.#requests >= requests_max) return false;
    if (now_ms - this.#requested_ms < request_pause_ms) return false;
    this.#requested_ms = now_ms;
    this.#requests += 1;
    return true;
  }

  restart(): void {
    this.#is_quadplane = false;
    this.#is_in_doubt = false;
    this.#requests = 0;
  }
}
