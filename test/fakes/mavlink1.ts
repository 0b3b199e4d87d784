/** Frames as an autopilot sends them whose port speaks MAVLink 1. */
import { checksum } from '../../drivers/mavlink/wire/checksum.ts';
import { baseLengths, crcExtraOf } from '../../drivers/mavlink/wire/definitions.ts';
import { FrameView, overhead_v1, stx_v1 } from '../../drivers/mavlink/wire/frame.ts';

const ids_max = 0xff;

/** Returns a MAVLink 2 frame as MAVLink 1, without extensions and signature; undefined if its id does not fit. */
export function asMavlink1(bytes: Uint8Array): Uint8Array | undefined {
  const { msgid, seq, sysid, compid, payload } = new FrameView(bytes, 0);
  if (msgid > ids_max) return undefined;
  const length = baseLengths[msgid] ?? 0;
  const frame = new Uint8Array(overhead_v1 + length);
  frame.set([stx_v1, length, seq, sysid, compid, msgid]);
  frame.set(payload.subarray(0, length), 6);
  const crc = checksum(frame, 1, 6 + length, crcExtraOf(msgid));
  frame.set([crc & 0xff, crc >>> 8], 6 + length);
  return frame;
}
