/** The error classes of the connector, chosen by what the caller will do with them. */

/** The configuration cannot be used. The process prints every fault and exits with 78 (EX_CONFIG). */
export class ConfigInvalid extends Error {
  override readonly name = 'ConfigInvalid';
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join('\n'));
    this.faults = faults;
  }
}

/** A device does not answer. The supervisor tries again later. */
export class DeviceUnreachable extends Error {
  override readonly name = 'DeviceUnreachable';
}

/** A device refuses us for good (wrong password, wrong model). The supervisor waits for a new configuration. */
export class DeviceRejected extends Error {
  override readonly name = 'DeviceRejected';
}

/** A command is not carried out. The message is what the operator reads in `result.error`. */
export class CommandRefused extends Error {
  override readonly name = 'CommandRefused';
}

/** The disk does not take what must be durable: full, read-only or failing. The caller goes on from memory. */
export class StorageUnavailable extends Error {
  override readonly name = 'StorageUnavailable';
}

/** The program contradicts itself. The process ends and systemd starts it again. */
export class InvariantBroken extends Error {
  override readonly name = 'InvariantBroken';
}

/** The text of anything that was thrown. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
