/** What the simulated vehicle reports of its pilot's transmitter. ArduPilot has no channels of a receiver that it has never seen. */
import type { Messages } from '../wire/messages.ts';

const stick_middle_us = 1_500;
const numbers = Array.from({ length: 18 }, (_, index) => index + 1);

/** `throttle_us`: pulse of the throttle stick; undefined: there is no transmitter. */
export function rcChannels(boot_ms: number, throttle_us: number | undefined): Messages['RC_CHANNELS'] {
  const pulse_us = throttle_us === undefined ? 0 : stick_middle_us;
  return {
    ...Object.fromEntries(numbers.map((number) => [`chan${number}_raw`, pulse_us])),
    time_boot_ms: boot_ms,
    chan3_raw: throttle_us ?? 0,
    chancount: throttle_us === undefined ? 0 : 8,
    rssi: 255,
  };
}
