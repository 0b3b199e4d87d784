/**
 * The throttle stick of a pilot's transmitter. In LOITER the height of an ArduCopter follows it: in the dead zone around its middle
 * the copter keeps its height, below it sinks, as far as the ground. The other modes of `set_mode` do not follow it on any vehicle.
 */
import type { CommandContext } from '../../../src/toolkit/driver/command.ts';
import { CommandRefused } from '../../../src/platform/errors.ts';
import { readParameters } from './parameters.ts';
import type { ModeName } from '../vehicles/modes.ts';
import type { Situation } from '../vehicles/situation.ts';
import { notSent } from './admission.ts';
import { report_reserve_ms, time_min_ms } from './exchange.ts';
import { texts } from './texts.ts';
import type { Addressee } from '../vehicles/addressee.ts';

/** ArduPilot's own; its parameter names another one. */
const channel_default = 3;
const channel_parameter = 'RCMAP_THROTTLE';
/** The lower end of the dead zone: the middle of 1000 to 2000 less THR_DZ as it is by default. */
const sinks_below_us = 1_400;
/** The longest pulse; more stands for a channel that is not there. */
const pulse_max_us = 2_500;
const fresh_ms = 2_500;
/** The report comes once a second after its request. */
const wait_ms = 2_000;

export function isLedByStick({ autopilot, kind, armed, airborne }: Situation, mode: ModeName): boolean {
  return (
    autopilot === 'ardupilot' &&
    kind === 'copter' &&
    mode === 'LOITER' &&
    armed !== false &&
    airborne !== false
  );
}

/** Resolves with the warning for a vehicle that follows the stick. Throws `CommandRefused` when the stick is known to be down. */
export async function admitStick(to: Addressee, context: CommandContext): Promise<string> {
  const { contact } = to;
  const spare_ms = Math.max(0, context.remaining_ms() - time_min_ms - report_reserve_ms);
  const within_ms = Math.min(wait_ms, spare_ms);
  contact.requestReport('sticks');
  const [channel] = await Promise.all([
    readChannel(to, { ...context, remaining_ms: () => within_ms }),
    to.changes.until(
      () => contact.latest.fresh('RC_CHANNELS', fresh_ms, performance.now()),
      within_ms,
      context.signal,
    ),
  ]);
  const report = contact.latest.fresh('RC_CHANNELS', fresh_ms, performance.now());
  if (!report) return texts.stick_unknown;
  const pulse_us = new Map(Object.entries(report)).get(`chan${channel}_raw`) ?? 0;
  if (report.chancount === 0 || pulse_us === 0 || pulse_us > pulse_max_us) return texts.no_transmitter;
  if (pulse_us < sinks_below_us) throw notSent(texts.about(to.name, texts.stick_down(channel, pulse_us)));
  return texts.stick_leads(channel, pulse_us);
}

async function readChannel(to: Addressee, context: CommandContext): Promise<number> {
  try {
    const { values } = await readParameters(to, [channel_parameter], context);
    return values.get(channel_parameter) ?? channel_default;
  } catch (error) {
    if (error instanceof CommandRefused) return channel_default;
    throw error;
  }
}
