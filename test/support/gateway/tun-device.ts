/** Virtual network devices whose packets this process sends and receives. */
import koffi, { type KoffiFunc } from 'koffi';

const o_rdwr = 0o2;
const o_nonblock = 0o4000;
const tunsetiff = 0x4004_54ca;
const kinds = { tun: 0x0001, tap: 0x0002 } as const;
const iff_no_pi = 0x1000;
const name_bytes = 16;
const ifreq_bytes = 40;
const frame_bytes_max = 65_536;

const self = koffi.load(null);
const open: KoffiFunc<(path: string, flags: number) => number> = self.func('int open(const char *, int)');
const close: KoffiFunc<(fd: number) => number> = self.func('int close(int)');
export const ioctl: KoffiFunc<(fd: number, request: number, value: Uint8Array) => number> = self.func(
  'int ioctl(int, unsigned long, void *)',
);
const read: KoffiFunc<(fd: number, data: Uint8Array, bytes: number) => number> = self.func(
  'long read(int, void *, size_t)',
);
const write: KoffiFunc<(fd: number, data: Uint8Array, bytes: number) => number> = self.func(
  'long write(int, const void *, size_t)',
);

/** The device exists as long as its descriptor is open. */
export interface TunDevice {
  readonly fd: number;
  send(frame: Buffer): void;
  close(): void;
}

/** `tap`: with Ethernet headers. The device is one of the namespace that this thread is in. */
export function openTun(name: string, kind: keyof typeof kinds, onFrame: (frame: Buffer) => void): TunDevice {
  const fd = open('/dev/net/tun', o_rdwr | o_nonblock);
  const request = Buffer.alloc(ifreq_bytes);
  request.write(name);
  request.writeUInt16LE(kinds[kind] | iff_no_pi, name_bytes);
  if (fd < 0 || ioctl(fd, tunsetiff, request) !== 0)
    throw new Error(`no device ${name}: errno ${koffi.errno()}`);
  const chunk = Buffer.alloc(frame_bytes_max);
  const poll = koffi.node.poll(fd, { readable: true }, () => {
    for (let bytes = 1; bytes > 0;) {
      bytes = read(fd, chunk, chunk.length);
      if (bytes > 0) onFrame(Buffer.from(chunk.subarray(0, bytes)));
    }
  });
  return {
    fd,
    send: (frame) => void write(fd, frame, frame.length),
    close() {
      poll.close();
      close(fd);
    },
  };
}
