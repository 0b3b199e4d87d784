/** Sentences of the platform that people read; tests refer to them by name. */
import { FileRefused, systemReason } from './errors.ts';

const readable =
  'give it the group of the user that runs kit-connector (chgrp) and chmod 640; if it has both, SELinux or AppArmor forbids it (ausearch -m avc, dmesg; volumes of containers: :Z)';
const remedies: Readonly<Record<string, string>> = {
  ENOENT: 'create it or name another file',
  ENOTDIR: 'create it or name another file',
  EACCES: readable,
  EPERM: readable,
  EISDIR: 'name a file',
  ENAMETOOLONG: 'name another file',
  ELOOP: 'name another file',
};

/** Of a socket that is bound to a network device, by errno. */
const socket_reasons: Readonly<Record<string, string>> = {
  ENETDOWN: 'the device is down',
  ENETUNREACH: 'no route through this device',
  EHOSTUNREACH: 'the next hop does not answer',
  EADDRNOTAVAIL: 'the device has no address of this family',
  EAFNOSUPPORT: 'this kernel has no such address family',
  ENODEV: 'the device is gone',
  ENXIO: 'the device is gone',
  ENOBUFS: 'the queue of the device is full',
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  ETIMEDOUT: 'no answer',
  EPERM: 'a firewall of this machine forbids it',
  EACCES: 'a firewall or route of this machine forbids it',
  EINVAL: 'the device has no route to this address',
  EMFILE: 'too many open files',
};

export const texts = {
  // Files
  /** Why a file could not be read, and the remedy; the file stands before it. */
  unreadable: (error: unknown) => {
    if (error instanceof FileRefused) return error.message;
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (code === 'ERR_INVALID_ARG_VALUE') return 'cannot be read (its name holds a NUL); name another file';
    return `cannot be read (${systemReason(error)}); ${remedies[code] ?? 'check the disk'}`;
  },
  no_file: 'is not a regular file; name the right file',
  larger_than: (bytes_max: number) => `is larger than ${bytes_max} bytes; name the right file`,
  world_access: (file: string) => `every user of this machine has access to ${file}; run "chmod o= ${file}"`,
  file_empty: (file: string) => `${file} is empty; write the secret into it`,
  not_utf8: (file: string) => `${file} is not UTF-8 text; write the secret as UTF-8`,

  // Log and journal
  level_reset: (level: string) => `log level reset to ${level}`,
  lines_suppressed: (line: string, count: number, seconds: number) =>
    `${line} (suppressed ${count} like this in ${seconds} s)`,
  too_many_lines: 'too many lines',
  lines_left_out: 'earlier lines left out',
  too_many_levels: (names_max: number) =>
    `${names_max} names have their own level already; reset one of them`,
  journal_slow: (lines: number, seconds: number) =>
    `journal too slow; ${lines} ${lines === 1 ? 'line' : 'lines'} lost within ${seconds} s`,
  socket_failed: (path: string, code: string) => `cannot open a socket for ${path}: ${code}`,
  path_too_long: (path: string) => `${path} is too long for a Unix socket`,

  // Network
  socket_reasons,
  bind_needs_raw: (device: string) =>
    `not permitted to bind a socket to ${device}: before Linux 5.7 this requires CAP_NET_RAW (AmbientCapabilities= of the unit)`,
  no_device: (device: string) => `network device ${device} not found`,
  bind_failed: (device: string, code: string) => `cannot bind a socket to ${device}: ${code}`,
  ip_socket: (family: number) => `an IPv${family} socket`,
  not_allowed: (what: string) => `${what} is not allowed`,
  not_opened: (what: string, reason: string) => `${what} cannot be opened: ${reason}`,
  netlink_not_opened: (code: string) => `cannot open a netlink socket: ${code}`,
  netlink_not_bound: (code: string) => `cannot bind the netlink socket: ${code}`,
  table_not_listed: (table: string, reason: string) => `the kernel does not list its ${table}: ${reason}`,
  table_refused: (table: string, errno: number) => `the kernel refuses to list its ${table}: error ${errno}`,
  not_an_address: (ip: string) => `${ip} is not an IP address`,
  icmp_not_allowed:
    'ICMP echo is not permitted; add the group of this process to net.ipv4.ping_group_range (sysctl), or grant it CAP_NET_RAW',
  other_protocol: 'changed to another protocol (status 101), which was not requested',
  interim_answers: 'sent interim answers (status 1xx) without end',
  connect_failed: (host: string, port: number, way: string, reason: string) =>
    `${host} port ${port}${way}: ${reason}`,
} as const;
