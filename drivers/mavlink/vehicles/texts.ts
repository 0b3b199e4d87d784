/** Sentences about vehicles that people read; tests refer to them by name. */
export const texts = {
  went_offline: (type: string) => `${type} went offline`,
  offline: (vehicle: string) => `${vehicle} is offline`,
  back_online: (type: string) => `${type} back online`,
  armed: 'vehicle armed',
  disarmed: 'vehicle disarmed',
  mode_changed: 'flight mode changed',
  silent: (seconds: number, link: string) => `no message for ${seconds} s over ${link}`,
  part_silent: (seconds: number) => `no message for ${seconds} s`,
  address_changed: (address: string) =>
    `received from ${address}, which is not its known address; check that this is the vehicle, then add the address to its hosts, or set up signing`,
  address_ignored:
    'vehicle is received from another address too, which is used only while it is lost; if both are its own, add them to its hosts, or set up signing',
  address_known_again: 'vehicle is received from its known address again',
  address_refused: 'ignoring what is sent as this vehicle from an address that is not among its hosts',
  address_reused: 'another vehicle sends from its address',
  id_shared: (system_id: number) =>
    `system id ${system_id} is used by two vehicles, and what is sent to one may reach the other: only commands that make a vehicle safer are sent; give each vehicle a unique id`,
  id_elsewhere: (system_id: number) =>
    `another address sends as system id ${system_id}; if it is a vehicle of yours, give each a unique id; if not, add the vehicle's address to its hosts, or set up signing`,
  alien_heartbeats: (system_id: number, component_id: number) =>
    `another program sends heartbeats as the autopilot (system ${system_id}, component ${component_id}), which are ignored; give it a component id of its own`,
  deaf: 'it answers nothing that this kit sends, so no command may reach it; check the sending direction of its link (wiring, router, firewall), and whether it accepts one ground station only (ArduPilot: SYSID_ENFORCE or MAV_OPTIONS with MAV_GCS_SYSID) or signed frames only (signing)',
  own_id_shared: (system_id: number, component_id: number) =>
    `another station uses the ids of this kit (system ${system_id}, component ${component_id}); set another system_id`,
  rival: 'another station uses the system and component id of this kit; set another system_id',
  identity_unconfirmed: 'its identity is not yet confirmed after a silence',
  conflict: 'two vehicles have the same system id; sending them only commands that make a vehicle safer',
  system_id_changed: 'vehicle has another system id now',
  conflict_resolved: 'system id conflict resolved',
  limit_reached: 'sender limit reached; ignoring further senders',
  more_senders: (what: string, limit: number) =>
    `more than ${limit} ${what} send, and only so many are served; set up another link, or switch others off`,
  telemetry_only: 'telemetry only: iNav and Betaflight carry out no commands over MAVLink',
  id_of_all: 'vehicle has id 0, which stands for all; ignoring it until it has another id',
  vehicle_text: 'vehicle sent a text',
  vehicle_warning: 'vehicle sent a warning',
  stream: (id: number) => `stream ${id}`,
  not_rtsp: (kind: string) => `it is ${kind}, which the kit cannot fetch; set the camera to RTSP`,
  stream_unusable: (name: string, reason: string) => `${name}: ${reason}`,
  no_stream: 'the camera reports no video stream',
  metadata_missing: 'metadata of events not read; showing their numbers',
  vehicle_event: 'vehicle reported an event',
  battery_state: (id: number, state: string) => `battery ${id + 1}: ${state}`,
  fence_breached: (type: string | null) =>
    `fence breached${type === null || type === 'none' ? '' : `: ${type.replace('_', ' ')}`}`,
  texts_suppressed: 'vehicle sent too many texts; not logging more for a minute',
} as const;
