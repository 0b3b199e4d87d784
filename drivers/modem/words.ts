/** ModemManager's numbers in a technician's words (ModemManager-enums.h). Pure. */
import type { LinkCause } from '../../src/contract/kit.ts';
import type { Modem } from './dbus/properties.ts';

/** `MMModemState` where there is no connection. */
const states: Readonly<Record<number, string>> = {
  0: 'state not known yet',
  1: 'starting',
  4: 'switching off',
  5: 'switching on',
  9: 'disconnecting',
  10: 'connecting',
};
const state = {
  unknown: 0,
  failed: -1,
  locked: 2,
  disabled: 3,
  enabled: 6,
  searching: 7,
  registered: 8,
  connected: 11,
} as const;

/** `MMModemStateFailedReason`. */
const failures: Readonly<Record<number, string>> = {
  2: 'no SIM card',
  3: 'SIM card does not work',
  4: 'capabilities cannot be read',
  5: 'eSIM without a profile',
};

/** `no SIM card`, `eSIM without a profile`. */
const is_slot_empty: ReadonlySet<number> = new Set([2, 5]);
/** `MMModemPowerState` of a modem whose radio is off. */
const low_power = 2;

/** `MMModemLock`. */
const locks: Readonly<Record<number, string>> = {
  2: 'SIM PIN is needed',
  3: 'SIM PIN2 is needed',
  4: 'SIM PUK is needed',
  5: 'SIM PUK2 is needed',
};
const registration_denied = 3;
const refused = 'refused by the network';

/** Bits of `MMModemAccessTechnology`, the newest first. */
const technologies: readonly (readonly [bit: number, name: string])[] = [
  [15, '5G'],
  [14, '4G'],
  [16, 'LTE-M'],
  [17, 'NB-IoT'],
  [9, '3G HSPA+'],
  [8, '3G HSPA'],
  [7, '3G HSUPA'],
  [6, '3G HSDPA'],
  [5, '3G'],
  [13, '3G EV-DO'],
  [12, '3G EV-DO'],
  [11, '3G EV-DO'],
  [10, '2G 1xRTT'],
  [4, '2G EDGE'],
  [3, '2G GPRS'],
  [1, '2G'],
];
const any_technology = 0xff_ff_ff_ff;

/** Such as `5G + 4G` (5G that needs a 4G anchor); null when not connected to any. */
export function technologyOf({ modem }: Modem): string | null {
  const bits = modem.AccessTechnologies ?? 0;
  if (bits === any_technology) return null;
  const names = technologies.filter(([bit]) => Math.floor(bits / 2 ** bit) % 2 === 1).map(([, name]) => name);
  return names.slice(0, 2).join(' + ') || null;
}

/** Why the modem gives no connection; null when it does. */
export function reasonOf(modem: Modem): string | null {
  const words = wordsOf(modem);
  return words === null ? null : `modem: ${words}`;
}

/** Why the modem gives no connection, as one word; null when it does. */
export function causeOf(read: Modem): LinkCause | null {
  if (reasonOf(read) === null) return null;
  return causes[read.modem.State ?? state.unknown]?.(read) ?? 'device';
}

/** States whose cause is not the modem itself. */
const causes: Readonly<Record<number, (read: Modem) => LinkCause>> = {
  [state.failed]: ({ modem }) => (sim_failures.has(modem.StateFailedReason ?? 0) ? 'no_sim' : 'device'),
  [state.locked]: () => 'no_sim',
  [state.enabled]: () => 'not_registered',
  [state.registered]: () => 'not_connected',
  [state.connected]: () => 'not_connected',
  // Modems report no quality while no cell is found.
  [state.searching]: ({ modem }) => ((modem.SignalQuality?.[0] ?? 0) === 0 ? 'no_signal' : 'not_registered'),
};
const sim_failures: ReadonlySet<number> = new Set([2, 3, 5]);

function wordsOf(read: Modem): string | null {
  const code = read.modem.State;
  if (code === undefined) return 'state not known yet';
  const words = explained[code];
  return words ? words(read) : (states[code] ?? `state ${code}`);
}

/** States that other properties say more of. */
const explained: Readonly<Record<number, (read: Modem) => string | null>> = {
  [state.failed]: ({ modem }) => failureOf(modem),
  // What a modem with an FCC lock stays in (lf-edge/eve#3549), and one that nothing enables.
  [state.disabled]: ({ modem }) =>
    modem.PowerState === low_power
      ? 'switched off, its radio in low power: enable it (nmcli radio wwan on, mmcli --enable); where that is refused, it has an FCC lock'
      : 'switched off',
  [state.locked]: ({ modem }) => locks[modem.UnlockRequired ?? 0] ?? 'locked to a network or device',
  // Where ModemManager leaves a modem that the network has refused.
  [state.enabled]: (read) => (isRefused(read) ? refused : 'on, not registered with a network'),
  [state.searching]: (read) => (isRefused(read) ? refused : 'searching for a network'),
  [state.registered]: ({ bearers, network }) => {
    const error = connectionError(bearers) ?? (isAbroad(network.RegistrationState) ? roaming_off : undefined);
    return error === undefined ? 'registered, not connected' : `registered, not connected: ${error}`;
  },
  [state.connected]: ({ bearers }) =>
    bearers.some(({ Connected, Suspended }) => Connected === true && Suspended === true)
      ? 'connection is suspended by the network'
      : null,
};

/** commaai/agnos-builder#55; NetworkManager asks for no connection then, so there is no error of one. */
const roaming_off = 'it roams, which its connection may not allow (gsm.home-only)';
/** `MMModem3gppRegistrationState` with another operator than the own one. */
const abroad: ReadonlySet<number> = new Set([5, 7, 10]);

/** True when the modem is registered with another operator than its own. */
export function isAbroad(registration: number | undefined): boolean {
  return abroad.has(registration ?? 0);
}

/** Modems with two slots read one of them, often an empty eSIM (Ysurac/openmptcprouter#3979, pop-os/cosmic-settings#2096). */
function failureOf({
  StateFailedReason: reason = 0,
  PrimarySimSlot: read = 0,
  SimSlots,
}: Modem['modem']): string {
  const words = failures[reason] ?? 'failed';
  if (!is_slot_empty.has(reason) || read === 0 || SimSlots.length < 2) return words;
  const other = SimSlots.findIndex((card, at) => card !== undefined && at !== read - 1) + 1;
  const found = other === 0 ? '' : `; slot ${other} has one (mmcli --set-primary-sim-slot=${other})`;
  return `${words} in slot ${read} of ${SimSlots.length}, which is the one that is used${found}`;
}

function isRefused({ network }: Modem): boolean {
  return network.RegistrationState === registration_denied;
}

/** Why the last attempt failed, in the modem's words. */
function connectionError(bearers: Modem['bearers']): string | undefined {
  return bearers.map(({ ConnectionError }) => ConnectionError?.[1]).find((reason) => reason !== undefined);
}
