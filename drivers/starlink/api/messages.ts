/** What a dish reports, with the numbers of its fields (SpaceX.API.Device). Pure: bytes in, facts out; undefined is not known. */
import {
  bool,
  decode,
  encodeEmptyField,
  encodeField,
  type Fields,
  floats,
  message,
  real,
  text,
  uint,
} from './protobuf.ts';

/** The one method that every question goes to. */
export const dish_method = '/SpaceX.API.Device.Device/Handle';

export const requests = {
  status: encodeEmptyField(1004),
  history: encodeEmptyField(1007),
  location: encodeEmptyField(1017),
  reboot: encodeEmptyField(1001),
  stow: encodeEmptyField(2002),
  // The field `unstow` of the request, true.
  unstow: encodeField(2002, [0x08, 0x01]),
} as const;

export interface DishStatus {
  readonly id: string | undefined;
  readonly hardware: string | undefined;
  readonly firmware: string | undefined;
  readonly uptime_s: number | undefined;
  /** `DishOutage.Cause`; undefined: there is no outage. */
  readonly outage: number | undefined;
  /** `UtDisablementCode`; 0 is not known, 1 is in order. */
  readonly disablement: number;
  /** Numbers of the fields of `DishAlerts` that are set. */
  readonly alerts: readonly number[];
  readonly obstructed: boolean;
  /** 0..1. */
  readonly obstructed_fraction: number | undefined;
  readonly downlink_bps: number | undefined;
  readonly uplink_bps: number | undefined;
  /** The satellite receiver of the dish has a fix; undefined when the dish does not report its receiver. */
  readonly gps_valid: boolean | undefined;
}

/** Undefined when the answer is no status of a dish. */
export function parseStatus(bytes: Uint8Array): DishStatus | undefined {
  const status = message(decode(bytes), 2004);
  if (!status) return undefined;
  const info = message(status, 1) ?? nothing;
  const outage = message(status, 1014);
  const obstruction = message(status, 1004) ?? nothing;
  const gps = message(status, 1015);
  const alerts = message(status, 1005) ?? nothing;
  return {
    id: text(info, 1),
    hardware: text(info, 2),
    firmware: text(info, 3),
    uptime_s: uint(message(status, 2) ?? nothing, 1),
    outage: outage && (uint(outage, 1) ?? 0),
    disablement: uint(status, 1024) ?? 0,
    alerts: [...alerts.keys()].filter((number) => bool(alerts, number)),
    obstructed: bool(obstruction, 5),
    obstructed_fraction: real(obstruction, 1),
    downlink_bps: real(status, 1007),
    uplink_bps: real(status, 1008),
    gps_valid: gps && bool(gps, 1),
  };
}

/** Rings with one sample for each second; the newest stands at (`current` - 1) modulo the length. */
export interface DishHistory {
  /** Seconds since the dish booted: a smaller value than before means a reboot. */
  readonly current: number;
  /** 0..1. */
  readonly drop_rate: readonly number[];
  readonly latency_ms: readonly number[];
}

/** Undefined when the answer is no history of a dish. */
export function parseHistory(bytes: Uint8Array): DishHistory | undefined {
  const history = message(decode(bytes), 2006);
  if (!history) return undefined;
  return {
    current: uint(history, 1) ?? 0,
    drop_rate: floats(history, 1001),
    latency_ms: floats(history, 1002),
  };
}

export interface DishLocation {
  readonly latitude: number;
  readonly longitude: number;
  /** `PositionSource`. */
  readonly source: number;
}

/** Undefined when the dish does not know where it is. */
export function parseLocation(bytes: Uint8Array): DishLocation | undefined {
  const location = message(decode(bytes), 1017);
  const lla = location && message(location, 1);
  if (!location || !lla) return undefined;
  // proto3 leaves out what is 0; both at once is how "unknown" looks.
  const latitude = real(lla, 1) ?? 0;
  const longitude = real(lla, 2) ?? 0;
  if ((latitude === 0 && longitude === 0) || Math.abs(latitude) > 90 || Math.abs(longitude) > 180)
    return undefined;
  return { latitude, longitude, source: uint(location, 3) ?? 0 };
}

/** `SpaceX.API.Status.Status`, the second way of a dish to refuse: inside an answer that gRPC calls a success. */
export function parseRefusal(
  bytes: Uint8Array,
): { readonly status: number; readonly reason: string } | undefined {
  const refusal = message(decode(bytes), 2);
  const status = (refusal && uint(refusal, 1)) ?? 0;
  if (!refusal || status === 0) return undefined;
  return { status, reason: text(refusal, 2, 200) ?? `status ${status}` };
}

const nothing: Fields = new Map();
