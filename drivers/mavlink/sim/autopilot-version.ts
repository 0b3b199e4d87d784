/** AUTOPILOT_VERSION of a simulated vehicle: its identity; other fields do not affect the driver. */
import type { Messages } from '../wire/messages.ts';

type Version = Messages['AUTOPILOT_VERSION'];

const ardupilot_4_6 = 0x04_06_00_ff;
/** What ArduPilot 4.6 on a quadrotor reports. */
const usual_capabilities = 0xe0ff;

/** `uid`: 16 hexadecimal digits. */
export function autopilotVersion(uid: string, flight_sw_version = ardupilot_4_6): Version {
  return {
    capabilities: usual_capabilities,
    uid,
    flight_sw_version,
    middleware_sw_version: 0,
    os_sw_version: 0,
    board_version: 0,
    vendor_id: 0,
    product_id: 0,
    flight_custom_version: [],
    middleware_custom_version: [],
    os_custom_version: [],
    uid2: [],
  };
}
