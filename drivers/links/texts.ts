/** Sentences of the links driver that people read; tests refer to them by name. */
export const texts = {
  // Links
  link_added: 'WAN link added',
  link_lost: 'WAN link lost',
  link_back: 'WAN link restored',
  status_changed: 'WAN link status changed',
  sys_unreadable: (path: string) => `${path} cannot be read; check options.roots.sys`,
  name_not_utf8: 'interface name is not UTF-8; not listed',
  rename_interface: 'rename it: ip link set dev OLD name NEW',
  proc_routes_only: 'routing read from /proc; policy rules unknown, changes noticed late',

  // Why a link has its status
  not_probed: 'answers are not checked: options.probe.targets is empty',
  first_probes: 'the first probes are under way',
  other_link_selected: 'traffic leaves by another link',
  traffic_refused: 'a default route of this machine refuses all traffic (blackhole, unreachable or prohibit)',
  marked_traffic_only: 'only traffic that a rule marks leaves by it',
  no_target_answers: 'no target answers',
  no_address: 'no address',
  no_default_route: 'no default route leads through it',
  interface_missing: 'the interface is not there',
  interface_down: 'the interface is switched off',
  no_carrier: 'no carrier: check cable, dish or modem',
  not_connected: (operstate: string) => `not connected (${operstate})`,
  probed: (reason: string, targets: string) => `${reason}; probed ${targets}`,
  counted_on: (link: string) => `its bytes are part of ${link}, which counts them`,
  clock_not_set: 'usage waits until the clock is set',

  // Probes
  no_targets: 'no probe targets are configured',
  device_gone: 'the device is gone',
  device_replaced: 'another device has this name now',
  cannot_probe: (reason: string) => `this machine cannot probe by device: ${reason}`,
  not_an_address: (ip: string) => `${ip} is not an IP address`,
  icmp_answered: 'ICMP probes answered; probing with ICMP',
  icmp_unanswered: 'ICMP probes not answered on this link; probing with TCP',
  icmp_unusable: 'ICMP not available; probing with TCP',
  targets_silent: 'probe targets silent while others answer; not counted as loss',
  target_answers: 'probe target answered again',

  // Records on disk
  availability_not_saved: 'link availability not saved; keeping it in memory',
  availability_saved: 'link availability saved again',
  availability_unreadable: 'stored availability unreadable; starting from zero',
  usage_not_saved: 'link usage not saved; keeping it in memory',
  usage_saved: 'link usage saved again',
  usage_unreadable: 'stored link usage unreadable; counting from zero',
} as const;
