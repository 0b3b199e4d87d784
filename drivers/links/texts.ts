const set_up_failover =
  'set up failover (connectivity check of NetworkManager, mwan3), or give a link that answers the lower metric';

/** Interfaces that a sentence names. */
const names_max = 8;

/** Sentences of the links driver that people read; tests refer to them by name. */
export const texts = {
  // Links
  link_added: 'WAN link added',
  link_lost: 'WAN link lost',
  link_back: 'WAN link restored',
  link_renamed: 'WAN link renamed; its usage continues',
  status_changed: 'WAN link status changed',
  sys_unreadable: (path: string) => `${path} cannot be read; check options.roots.sys`,
  name_not_utf8: 'interface name is not UTF-8; not listed',
  too_many: 'too many WAN links; some are not listed',
  ignore_some: 'name the important interfaces in options.wan, the others in options.ignore',
  rename_interface: 'rename it: ip link set dev OLD name NEW',
  proc_routes_only: 'routing read from /proc; policy rules unknown, changes noticed late',

  // Why a link has its status
  not_probed: 'answers are not checked: options.probe.targets is empty',
  none_of_its_family: (families: string) =>
    `answers are not checked: it has no ${families} (address or default route), and options.probe.targets and checks have nothing else; add targets of the other family`,
  family_missing: (families: string) =>
    `${families} is not probed: no address or no default route by this link`,
  only_connections_answer:
    'no probe or check is answered, but the connections of this kit over it are: probes are filtered, or answered by something in between',
  below_tunnel: 'carries a VPN with all of the traffic, so its own answers cannot be checked',
  first_probes: 'the first probes are under way',
  other_link_selected: 'traffic uses another link',
  dead_link_selected: (dead: string) => `traffic still uses ${dead}, which is offline`,
  still_in_use: 'the default route still leads to it',
  traffic_refused:
    'a default route or routing rule of this machine refuses all traffic (blackhole, unreachable or prohibit)',
  marked_traffic_only: 'used only by traffic that a routing rule marks',
  no_target_answers: 'no target answers',
  no_address: 'no address',
  no_default_route: 'no default route uses it',
  interface_missing: 'interface not found',
  name_matches_nothing: (names: readonly string[]) => {
    const named = names.slice(0, names_max).join(', ');
    const rest = names.length - names_max;
    return `no interface has had this name or alternative name; there are ${rest > 0 ? texts.and_more(named, rest) : named}`;
  },
  interface_down: 'the interface is switched off',
  no_carrier: 'no carrier: check cable, dish or modem',
  not_connected: (operstate: string) => `not connected (${operstate})`,
  probed: (reason: string, targets: string) => `${reason}; probed ${targets}`,
  counted_on: (link: string) => `its traffic is counted on ${link}`,
  bytes_unknown: (day: string) => `the byte counters jumped on ${day}: what passed then is not in its usage`,
  clock_not_set: 'usage is added to a day once the clock is set',

  // Failover
  no_failover: 'dead link still has the default route; traffic is lost',
  no_failover_over: 'default route no longer leads to the dead link',
  set_up_failover,
  dead_link_in_use: (dead: string, able: string) =>
    `the default route still leads to ${dead}, which is offline, although ${able} answers; ${set_up_failover}`,

  /** What a technician does about a link that is offline, by its cause. */
  remedies: {
    removed: 'plug it in again, or correct or remove its name in options.wan',
    switched_off: 'switch it on (ip link set up), and check what has switched it off',
    no_carrier: 'check its cable and the power of its dish or modem',
    not_connected: 'check the connection of its modem or its Wi-Fi',
    no_address: 'check the DHCP server or the modem behind it',
    no_route:
      'check the default routes (ip route, ip rule): DHCP, router advertisements or a dialler set them',
    no_answer: 'check its dish or modem, and its account with the provider',
    wrong_answer:
      'sign in to the portal of the provider, or check the account; where a server of options.checks does not answer at all, name another one',
  },

  // Data caps
  cap_ok: 'data cap renewed',
  cap_states: {
    forecast: 'data cap will not last until the end of the billing month',
    warning: 'most of the data cap is used',
    exceeded: 'data cap exceeded',
  },
  cap_used: (
    link: string,
    { used_gb, cap_gb, renewed }: { used_gb: number; cap_gb: number; renewed: string },
  ) =>
    `${link} has used ${used_gb} of ${cap_gb} GB until ${renewed}; buy data or move traffic to another link`,
  cap_forecast: (
    link: string,
    { forecast_gb, cap_gb, renewed }: { forecast_gb: number; cap_gb: number; renewed: string },
  ) =>
    `${link} will use about ${forecast_gb} of ${cap_gb} GB until ${renewed}; reduce rates or move traffic to another link`,
  probes_of: (targets: string) => `probes of ${targets}`,
  not_asked: 'no targets and no checks',

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
  tcp_stands_in:
    'ICMP is not answered; the figures come from TCP handshakes, which a portal or an accelerator in between may answer',

  // Checks
  checks_failed: 'link checks failed; the link counts as unreachable',
  checks_passed: 'link checks passed again',
  only_checks_answer: 'no probe is answered, but the checks are: probes are filtered on this link',
  check_failed: (check: string, reason: string) => `check ${check} failed: ${reason}`,
  dns_silent: (name: string, server: string) => `the name server ${server} did not answer for ${name}`,
  dns_refused: (name: string, server: string, code: string) =>
    `the name server ${server} answered ${code} for ${name}`,
  dns_unexpected: (name: string, server: string, got: string) =>
    `the name server ${server} answered ${got} for ${name}, which is not expected: a portal or a filter may answer in its place`,
  and_more: (named: string, more: number) => `${named} and ${more} more`,
  http_silent: (url: string) => `${url} did not answer`,
  http_failed: (url: string, reason: string) => `${url}: ${reason}`,
  http_unexpected: (
    url: string,
    status: number,
    { expected, to }: { expected: number; to: string | undefined },
  ) =>
    `${url} answered ${status}${to === undefined ? '' : ` (to ${to.slice(0, 100)})`}, not ${expected}: a captive portal or an empty account may answer in its place`,
  http_other_text: (url: string) =>
    `${url} answered without the expected text: something else answers in its place`,

  // Records on disk
  availability_not_saved: 'link availability not saved; keeping it in memory',
  availability_saved: 'link availability saved again',
  availability_unreadable: 'stored availability unreadable; starting from zero',
  usage_not_saved: 'link usage not saved; keeping it in memory',
  usage_saved: 'link usage saved again',
  usage_unreadable: 'stored link usage unreadable; counting from zero',
} as const;
