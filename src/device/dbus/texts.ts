/** Sentences about the message bus that people read; tests refer to them by name. */
export const texts = {
  bus_failed: (address: string, reason: string) => `D-Bus at ${address}: ${reason}`,
  bus_closed: 'connection closed by the bus',
  bus_closed_at_once: 'connection closed immediately',
  bus_lost: 'bus connection lost',
  no_hello: 'no reply to Hello',
  bus_timeout: (timeout_ms: number) => `connecting timed out after ${timeout_ms} ms`,
  bus_error: (reason: string) => `${reason}; check that dbus-daemon runs`,
  call_timeout: (destination: string, member: string) => `${destination} did not answer ${member} in time`,
  call_failed: (member: string, reason: string) => `${member} failed: ${reason}`,
} as const;
