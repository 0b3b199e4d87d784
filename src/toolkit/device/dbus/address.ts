/** The option of a driver that names a message bus. */
import { z } from 'zod';

/** A socket of this machine; other addresses could start a program. The system bus when left out. */
export const busAddress = z
  .string()
  .regex(/^unix:(?:path|abstract)=[^,;]+$/u, 'must be unix:path=/some/socket or unix:abstract=name')
  .default('unix:path=/run/dbus/system_bus_socket');
