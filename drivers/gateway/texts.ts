/** Sentences of the gateway driver that people read; tests refer to them by name. */
export const texts = {
  proc_unreadable: (path: string) => `${path} cannot be read; check options.roots.proc`,

  support_bundle:
    'Collects diagnostic data of the kit without secrets, as `kit-connector support-bundle` does, and sends it to the cloud as a file.',
  no_bundles: 'this process cannot make support bundles',

  // Restart
  reboot:
    'Restarts the gateway. The kit is offline for a minute or more; the task is completed after the restart.',
  restarting: 'gateway is restarting',
  restart_ordered: 'the restart was requested and cannot be cancelled',
  not_restarted: 'the gateway accepted the restart but did not restart',
  order_unknown: 'no restart is recorded for the interrupted task; it is not requested again',
  stopped_before_order: 'the task was stopped before the restart was requested',
  order_not_saved: (reason: string) => `cannot record the restart (${reason})`,
  boot_unknown: (path: string, reason: string) => `cannot read ${path} (${reason})`,
  logind_failed: (reason: string) => `systemd-logind refused: ${reason}`,
  reboot_not_allowed: (answer: string) =>
    `systemd-logind does not allow the restart (${answer}); allow org.freedesktop.login1.reboot for the user of the daemon in a polkit rule`,
} as const;
