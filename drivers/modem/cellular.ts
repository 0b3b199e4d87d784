/** The entry of each modem in the feed `cellular` of the kit's gateway. Pure. */
import type { CellularModem } from '../../src/contract/feeds.ts';
import type { Modem, Cell } from './dbus/properties.ts';
import { interfacesOf, isHome } from './links.ts';
import { isAbroad, reasonOf, technologyOf } from './words.ts';

/** Digits of identities that leave the kit: enough to distinguish two, too few to track one. */
const shown_digits = 4;

/** Modems without an interface are left out: a value belongs to a link. */
export function cellularOf(
  modems: readonly Modem[],
  interfaces: Readonly<Record<string, string>>,
): readonly CellularModem[] {
  return modems.flatMap((modem) => {
    const name = interfacesOf(modem, interfaces)[0];
    return name === undefined ? [] : [oneOf(name, modem)];
  });
}

function oneOf(name: string, read: Modem): CellularModem {
  const { modem } = read;
  return {
    name,
    state: reasonOf(read)?.replace('modem: ', '') ?? 'connected',
    signal_pct: modem.SignalQuality?.[0] ?? null,
    technology: technologyOf(read),
    ...servingCell(read.cells),
    ...strengthOf(read),
    ...subscriptionOf(read),
    model: modem.Model ?? null,
    imei_end: endOf(modem.EquipmentIdentifier),
  };
}

function subscriptionOf({ network, sim }: Modem) {
  const isAway = isAbroad(network.RegistrationState);
  return {
    operator: network.OperatorName ?? null,
    operator_code: network.OperatorCode ?? null,
    roaming: isAway || isHome(network.RegistrationState) ? isAway : null,
    sim_operator: sim.OperatorName ?? null,
    sim_iccid_end: endOf(sim.SimIdentifier),
  };
}

function endOf(identity: string | undefined): string | null {
  return identity?.slice(-shown_digits) ?? null;
}

/** First and last downlink channel of each LTE band (EARFCN, 3GPP TS 36.101 table 5.7.3-1). */
const lte_bands: readonly (readonly [band: number, first: number, last: number])[] = [
  [1, 0, 599],
  [2, 600, 1_199],
  [3, 1_200, 1_949],
  [4, 1_950, 2_399],
  [5, 2_400, 2_649],
  [7, 2_750, 3_449],
  [8, 3_450, 3_799],
  [12, 5_010, 5_179],
  [13, 5_180, 5_279],
  [14, 5_280, 5_379],
  [17, 5_730, 5_849],
  [18, 5_850, 5_999],
  [19, 6_000, 6_149],
  [20, 6_150, 6_449],
  [25, 8_040, 8_689],
  [26, 8_690, 9_039],
  [28, 9_210, 9_659],
  [29, 9_660, 9_769],
  [30, 9_770, 9_869],
  [31, 9_870, 9_919],
  [32, 9_920, 10_359],
  [38, 37_750, 38_249],
  [39, 38_250, 38_649],
  [40, 38_650, 39_649],
  [41, 39_650, 41_589],
  [42, 41_590, 43_589],
  [43, 43_590, 45_589],
  [46, 46_790, 54_539],
  [48, 55_240, 56_739],
  [66, 66_436, 67_335],
  [68, 67_536, 67_835],
  [71, 68_586, 68_935],
  [72, 68_936, 68_985],
];

/** Rasters of the downlink channel of 5G (NR-ARFCN, 3GPP TS 38.104 table 5.4.2.1-1). */
const nr_rasters = [
  { first: 2_016_667, from_mhz: 24_250.08, step_mhz: 0.06 },
  { first: 600_000, from_mhz: 3_000, step_mhz: 0.015 },
  { first: 0, from_mhz: 0, step_mhz: 0.005 },
] as const;

const nr_arfcn_max = 3_279_165;

interface ServingCell {
  /** Such as `B20`; null for 5G, whose bands overlap. */
  readonly band: string | null;
  readonly freq_mhz: number | null;
}

/** Of the serving cell; with 5G beside 4G that of 5G. */
export function servingCell(cells: readonly Cell[]): ServingCell {
  const serving = cells.filter((cell) => cell.serving === true);
  const nrarfcn = serving.find((cell) => cell.nrarfcn !== undefined)?.nrarfcn;
  if (nrarfcn !== undefined) return { band: null, freq_mhz: nrFrequency(nrarfcn) };
  const earfcn = serving.find((cell) => cell.earfcn !== undefined)?.earfcn;
  if (earfcn === undefined) return { band: null, freq_mhz: null };
  const band = lte_bands.find(([, first, last]) => earfcn >= first && earfcn <= last)?.[0];
  return { band: band === undefined ? null : `B${band}`, freq_mhz: null };
}

function nrFrequency(arfcn: number): number | null {
  const raster = nr_rasters.find(({ first }) => arfcn >= first);
  if (!raster || arfcn === 0 || arfcn > nr_arfcn_max) return null;
  return Math.round((raster.from_mhz + (arfcn - raster.first) * raster.step_mhz) * 1_000) / 1_000;
}

interface Strength {
  readonly rssi_dbm: number | null;
  readonly rsrp_dbm: number | null;
  readonly rsrq_db: number | null;
  readonly snr_db: number | null;
}

const no_strength: Strength = { rssi_dbm: null, rsrp_dbm: null, rsrq_db: null, snr_db: null };

/** Of the newest technology that has figures; with 5G also those of the 4G carrier that it needs (NSA). */
export function strengthOf({ signal, cells }: Pick<Modem, 'signal' | 'cells'>): Strength & {
  readonly anchor?: NonNullable<CellularModem['anchor']>;
} {
  const [nr, lte] = [strengthIn('Nr5g', signal), strengthIn('Lte', signal)];
  if (isKnown(nr) && isKnown(lte)) {
    const lte_cells = cells.filter(({ nrarfcn }) => nrarfcn === undefined);
    return { ...nr, anchor: { band: servingCell(lte_cells).band, ...lte } };
  }
  const newest = [nr, lte, strengthIn('Umts', signal), strengthIn('Gsm', signal)];
  return newest.find(isKnown) ?? no_strength;
}

function isKnown(strength: Strength): boolean {
  return Object.values(strength).some((value) => value !== null);
}

type Range = readonly [min: number, max: number];

/**
 * What each technology can report; the first figure is the one that is measured for all others. ModemManager's value for an unknown
 * figure is far below, and firmware reports 0, -32768, the absolute value or a channel number for one that it does not have.
 *
 * GSM: TS 45.008 section 8.1.4. UMTS: TS 25.133 sections 9.1.1 to 9.1.3. LTE: TS 36.133 sections 9.1.4, 9.1.7 and 9.1.17 with the extended
 * ranges. NR: TS 38.133 sections 10.1.6, 10.1.11 and 10.1.16. +CESQ has the same ends, TS 27.007 section 8.69 (for LTE without the
 * extended ranges). RSSI reaches down to that of +CSQ, section 8.5.
 *
 * Checked against what is public: github.com/ftk1000/5G lte_notes.md (tables 9.1.4-1 and 9.1.7-1), txrjy.com thread 1290014 and Android's
 * CellSignalStrengthNr (the three of NR), CarrierConfigManager KEY_LTE_RSRQ_THRESHOLDS (-34 to 3) and CellSignalStrengthWcdma (Ec/No -24),
 * WcdmaNmrObj of AWS IoT Wireless (RSCP -120 to -25), ModemManager mm-modem-helpers.c (+CESQ) and mm-modem-helpers-mbim.c (-156, -23 to 40).
 */
const ranges: Readonly<Record<Technology, Readonly<Partial<Record<Figure, Range>>>>> = {
  Nr5g: { rsrp: [-156, -31], rsrq: [-43, 20], snr: [-23, 40], rssi: [-113, -25] },
  Lte: { rsrp: [-156, -44], rsrq: [-34, 2.5], snr: [-23, 40], rssi: [-113, -25] },
  Umts: { rscp: [-120, -25], ecio: [-24, 0], rssi: [-113, -25] },
  Gsm: { rssi: [-113, -48] },
};
type Technology = 'Nr5g' | 'Lte' | 'Umts' | 'Gsm';
type Figure = 'rssi' | 'rsrp' | 'rsrq' | 'snr' | 'rscp' | 'ecio';

/** Where the power of the cell is impossible, the firmware had no measurement, and its other figures are none either. */
function strengthIn(technology: Technology, signal: Modem['signal']): Strength {
  const values = signal[technology] ?? {};
  const figure = (name: Figure): number | null => inRange(values[name], ranges[technology][name]);
  const power = technology === 'Umts' ? 'rscp' : 'rsrp';
  if (values[power] !== undefined && figure(power) === null) return no_strength;
  return {
    rssi_dbm: figure('rssi'),
    rsrp_dbm: figure(power),
    rsrq_db: figure(technology === 'Umts' ? 'ecio' : 'rsrq'),
    snr_db: figure('snr'),
  };
}

function inRange(value: number | undefined, range: Range | undefined): number | null {
  if (value === undefined || range === undefined || !(value >= range[0] && value <= range[1])) return null;
  return Math.round(value * 10) / 10;
}
