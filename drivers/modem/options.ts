/** The options of the modem driver. */
import { z } from 'zod';
import { busAddress } from '../../src/toolkit/device/dbus/address.ts';
import { numberIn, textUpTo, wholeIn } from '../../src/toolkit/driver/option-types.ts';

const interfaceName = textUpTo(15);

export const modemOptions = z.strictObject({
  bus: busAddress.describe('D-Bus address on which ModemManager is found'),
  interval_s: numberIn(1, 3_600)
    .default(60)
    .describe('seconds between two looks when ModemManager signals no change'),
  timeout_s: numberIn(0.1, 60)
    .default(10)
    .describe('seconds that ModemManager has for each answer; then it counts as lost'),
  interfaces: z
    .record(textUpTo(64), interfaceName)
    .default({})
    .describe('network interface by data port, for modems that dial: ttyUSB2: ppp0'),
  signal_interval_s: wholeIn(0, 3_600)
    .default(0)
    .describe(
      'seconds between two readings of signal strength and band, which need the right to control modems (polkit: Device.Control); 0: not read',
    ),
  commands: z
    .array(z.enum(['reset']))
    .max(1)
    .default([])
    .describe('reset: lets operators reset a modem; none by default'),
  location: z
    .boolean()
    .default(false)
    .describe(
      "true: the position that the modem's satellite receiver finds is read; the receiver itself is switched on elsewhere (mmcli --location-enable-gps-raw)",
    ),
  location_interval_s: numberIn(1, 600)
    .default(10)
    .describe('seconds between two questions for the position'),
});
export type ModemOptions = z.output<typeof modemOptions>;
