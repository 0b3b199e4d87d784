/** Sentences about the message bus that people read; tests refer to them by name. */
export const texts = {
  bus_failed: (address: string, reason: string) => `D-Bus at ${address}: ${reason}`,
  bus_closed: 'connection closed by the bus',
  bus_lost: 'bus connection lost',
  no_hello: 'no reply to Hello',
  bus_error: (reason: string) => `${reason}; check that dbus-daemon runs`,
  no_socket: 'no such socket; check that dbus-daemon runs, and the option bus',
  not_bus: (answer: string) =>
    `answers with something that is not D-Bus, or refuses this user (${answer}); check the option bus`,
  unreadable: (reason: string) =>
    `rejected a message (${reason}); restart the program that sends it, or check the option bus`,
  call_timeout: (destination: string, member: string) =>
    `${destination} did not answer ${member} in time; check that it runs, and restart it if it hangs`,
  call_failed: (member: string, reason: string) => `${member} failed: ${reason}`,
} as const;
