/** The few functions of the C library that Node.js has no door to: sockets that are bound to a network device, serial ports, clocks. */

/** Names as in the manual pages; -1 means an error, see `errno`. Buffers are written in place. */
export interface Libc {
  readonly socket: (domain: number, type: number, protocol: number) => number;
  readonly bind: (fd: number, address: Uint8Array, bytes: number) => number;
  readonly connect: (fd: number, address: Uint8Array, bytes: number) => number;
  readonly setsockopt: (
    ...args: [fd: number, level: number, name: number, value: Uint8Array, bytes: number]
  ) => number;
  readonly getsockopt: (
    ...args: [fd: number, level: number, name: number, value: Uint8Array, bytes: Uint8Array]
  ) => number;
  readonly getsockname: (fd: number, address: Uint8Array, bytes: Uint8Array) => number;
  readonly getpeername: (fd: number, address: Uint8Array, bytes: Uint8Array) => number;
  readonly sendto: (
    ...args: [
      fd: number,
      data: Uint8Array,
      bytes: number,
      flags: number,
      address: Uint8Array | null,
      address_bytes: number,
    ]
  ) => number;
  readonly recvfrom: (
    ...args: [
      fd: number,
      data: Uint8Array,
      bytes: number,
      flags: number,
      address: Uint8Array | null,
      address_bytes: Uint8Array | null,
    ]
  ) => number;
  readonly ioctl: (fd: number, request: number, value: Uint8Array) => number;
  readonly tcflush: (fd: number, queue: number) => number;
  readonly tcflow: (fd: number, action: number) => number;
  readonly clock_gettime: (clock: number, timespec: Uint8Array) => number;
  readonly adjtimex: (timex: Uint8Array) => number;
  readonly close: (fd: number) => number;
  readonly if_nametoindex: (name: string) => number;
  /** Writes the name, 16 bytes at most with its zero; whether there is such a device. */
  readonly if_indextoname: (index: number, name: Uint8Array) => boolean;
  /** Name of the last failure of this thread: `ENODEV`. */
  readonly errno: () => string;
  readonly errnoName: (errno: number) => string;
  /**
   * Calls `ready` each time the descriptor can be read (or written), until the returned function is called, which must
   * be before `close`. `ready` runs outside of Node's own callbacks: promises that it settles and errors that it throws
   * would be seen late or never, so it takes what is there and hands it to `setImmediate`.
   */
  readonly watch: (fd: number, what: 'readable' | 'writable', ready: () => void) => () => void;
}

let loaded: Promise<Libc> | undefined;

/** Loads the binding at the first call, so that a daemon that needs none of this pays nothing. */
export async function libc(): Promise<Libc> {
  loaded ??= load();
  return loaded;
}

async function load(): Promise<Libc> {
  const koffi = await import('koffi');
  // The process itself: whatever C library Node.js runs on, its functions are there.
  const self = koffi.load(null);
  const names = new Map(Object.entries(koffi.os.errno).map(([name, number]) => [number, name]));
  const errnoName = (errno: number): string => names.get(errno) ?? `errno ${errno}`;
  const if_indextoname: (index: number, name: Uint8Array) => unknown = self.func(
    'void *if_indextoname(unsigned int, void *)',
  );
  return {
    socket: self.func('int socket(int, int, int)'),
    bind: self.func('int bind(int, const void *, uint32_t)'),
    connect: self.func('int connect(int, const void *, uint32_t)'),
    setsockopt: self.func('int setsockopt(int, int, int, const void *, uint32_t)'),
    getsockopt: self.func('int getsockopt(int, int, int, void *, void *)'),
    getsockname: self.func('int getsockname(int, void *, void *)'),
    getpeername: self.func('int getpeername(int, void *, void *)'),
    sendto: self.func('long sendto(int, const void *, size_t, int, const void *, uint32_t)'),
    recvfrom: self.func('long recvfrom(int, void *, size_t, int, void *, void *)'),
    ioctl: self.func('int ioctl(int, unsigned long, void *)'),
    tcflush: self.func('int tcflush(int, int)'),
    tcflow: self.func('int tcflow(int, int)'),
    clock_gettime: self.func('int clock_gettime(int, void *)'),
    adjtimex: self.func('int adjtimex(void *)'),
    close: self.func('int close(int)'),
    if_nametoindex: self.func('unsigned int if_nametoindex(const char *)'),
    if_indextoname: (index, name) => if_indextoname(index, name) !== null,
    errno: () => errnoName(koffi.errno()),
    errnoName,
    watch(fd, what, ready) {
      const handle = koffi.node.poll(fd, { [what]: true }, ready);
      return () => handle.close();
    },
  };
}
