/**
 * Schemas of ModemManager's objects. A property that is missing or of another type is unknown and never makes the others
 * unreadable. https://www.freedesktop.org/software/ModemManager/doc/latest/ModemManager/
 */
import { z } from 'zod';

export const mm = 'org.freedesktop.ModemManager1';

/** Limit of names of operators, models and interfaces. */
const text_max = 64;
/** Of a text before it is cleaned, which shortens it. */
const raw_text_max = 1_024;
const whole = z.number().int().optional().catch(undefined);
const text = z
  .string()
  .transform((raw) => raw.slice(0, raw_text_max).replaceAll(/\p{C}/gu, '').trim())
  .transform((clean) => fromHex(clean).slice(0, text_max))
  .transform((plain) => (plain === '' ? undefined : plain))
  .optional()
  .catch(undefined);
/** MCC and MNC (3GPP TS 23.003 section 2.2). */
const network_code = z
  .string()
  .transform(fromHex)
  .refine((code) => /^\d{5,6}$/u.test(code))
  .optional()
  .catch(undefined);
const flag = z.boolean().optional().catch(undefined);
/** Kind and number of an object. A path of any other form, such as a key that is no path, could not be asked. */
const object_path = /^\/org\/freedesktop\/ModemManager1\/[A-Za-z]\w{0,15}\/(\d{1,10})$/u;
/** The path `/` means none. */
const path = z.string().regex(object_path).optional().catch(undefined);
/** Above the number of ports or bearers of any modem. */
const list_max = 32;

/**
 * Firmware that was set to UCS-2 or HEX (`AT+CSCS`, 3GPP TS 27.007 section 5.5) gives texts in hex digits, which ModemManager passes on.
 * Digits alone may be a name as they are, unless they begin as UCS-2 of Latin letters does.
 */
function fromHex(text: string): string {
  if (!/^(?:[\dA-F]{2}){4,}$/iu.test(text) || !/[A-F]|^00/iu.test(text)) return text;
  const bytes = Buffer.from(text, 'hex');
  const isAscii = bytes.every((byte) => byte >= 0x20 && byte < 0x7f);
  if (!isAscii && bytes.length % 2 !== 0) return text;
  const decoded = isAscii ? bytes.toString('latin1') : bytes.swap16().toString('utf16le');
  const isName = /^[\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}]+$/u.test(decoded) && /[\p{L}\p{N}]/u.test(decoded);
  return isName ? decoded.trim() : text;
}

/** `org.freedesktop.ModemManager1.Modem`. */
export const modemProperties = z.looseObject({
  State: whole,
  StateFailedReason: whole,
  UnlockRequired: whole,
  PowerState: whole,
  /** From 1 on; 0: the modem does not report its slots. */
  PrimarySimSlot: whole,
  /** The card in each slot; a slot without one has the path `/`. */
  SimSlots: z.array(path).max(list_max).catch([]),
  AccessTechnologies: whole,
  SignalQuality: z
    .tuple([z.number().min(0).max(100), z.boolean()])
    .optional()
    .catch(undefined),
  EquipmentIdentifier: text,
  Manufacturer: text,
  Model: text,
  Sim: path,
  Bearers: z.array(path).max(list_max).catch([]),
  Ports: z
    .array(z.tuple([z.string().max(text_max), z.number()]))
    .max(list_max)
    .catch([]),
});

/** `org.freedesktop.ModemManager1.Modem.Modem3gpp`. */
export const networkProperties = z.looseObject({
  RegistrationState: whole,
  OperatorCode: network_code,
  OperatorName: text,
});

/** `org.freedesktop.ModemManager1.Modem.Location`. */
export const locationProperties = z.looseObject({ Enabled: whole });

/** `org.freedesktop.ModemManager1.Bearer`. */
export const bearerProperties = z.looseObject({
  Interface: text,
  Connected: flag,
  Suspended: flag,
  ConnectionError: z.tuple([z.string(), text]).optional().catch(undefined),
});

/** `org.freedesktop.ModemManager1.Sim`. */
export const simProperties = z.looseObject({ OperatorName: text, SimIdentifier: text });

const figure = z.number().optional().catch(undefined);
const signalFigures = z
  .looseObject({ rssi: figure, rsrp: figure, rsrq: figure, snr: figure, rscp: figure, ecio: figure })
  .optional()
  .catch(undefined);

/** `org.freedesktop.ModemManager1.Modem.Signal`; dBm and dB. Empty until a client asks for it. */
export const signalProperties = z.looseObject({
  Rate: whole,
  Gsm: signalFigures,
  Umts: signalFigures,
  Lte: signalFigures,
  Nr5g: signalFigures,
});

const cell = z.looseObject({ serving: flag, earfcn: whole, nrarfcn: whole });
export type Cell = z.output<typeof cell>;
/** What `GetCellInfo` answers. */
export const cellProperties = z.array(cell);

/** The number of an object in its path; undefined when it is not one of ModemManager's. */
export function objectNumber(path: string): number | undefined {
  const [, number] = object_path.exec(path) ?? [];
  return number === undefined ? undefined : Number(number);
}

const properties = z.record(z.string(), z.unknown());
/** The answer to `GetManagedObjects`. */
export const managedObjects = z.record(z.string(), z.record(z.string(), properties));

/** One modem with its parts; a missing part is an object without properties. */
export interface Modem {
  /** Its object; changes when the modem is plugged in again. */
  readonly path: string;
  readonly modem: z.output<typeof modemProperties>;
  readonly network: z.output<typeof networkProperties>;
  readonly location: z.output<typeof locationProperties>;
  readonly sim: z.output<typeof simProperties>;
  readonly signal: z.output<typeof signalProperties>;
  readonly cells: readonly Cell[];
  readonly bearers: readonly z.output<typeof bearerProperties>[];
}
