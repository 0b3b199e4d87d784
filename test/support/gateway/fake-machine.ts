/** A directory that looks like /proc, /sys and /etc of a gateway, as far as the drivers of the gateway and its links read them. */
import { renameSync, rmSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface FakeInterface {
  readonly name: string;
  /** ARPHRD number; 1 is Ethernet. */
  readonly type?: number;
  /** False: a bridge, a container's, a tunnel. */
  readonly hardware?: boolean;
  readonly driver?: string;
  readonly devtype?: string;
  readonly master?: string;
  readonly wireless?: boolean;
  /** Given as undefined: it cannot be read. */
  readonly carrier?: '0' | '1' | undefined;
  readonly operstate?: string;
  readonly ifindex?: number;
  readonly rx_bytes?: number;
  readonly tx_bytes?: number;
  readonly mac?: string;
  /** As the kernel shows them; `0x1003` is up. */
  readonly flags?: string;
  readonly speed?: number;
  readonly mtu?: number;
  /** Interfaces that it stands on. */
  readonly lowers?: readonly string[];
  readonly tun?: boolean;
}

export interface FakeMachine {
  readonly roots: { readonly proc: string; readonly sys: string; readonly etc: string };
  /** Busy and idle ticks since boot. */
  setCpu(busy: number, idle: number): Promise<void>;
  setInterface(about: FakeInterface): Promise<void>;
  /** It was unplugged. */
  removeInterface(name: string): void;
  /** Default routes of the main table, IPv4. */
  setRoutes(routes: readonly { readonly device: string; readonly metric?: number }[]): Promise<void>;
  /** Writes one file below `proc`, `sys` or `etc`. */
  write(path: string, text: string): Promise<void>;
  /** /proc is gone, or back. */
  setPresent(present: boolean): Promise<void>;
  remove(): Promise<void>;
}

export async function fakeMachine(): Promise<FakeMachine> {
  const dir = await mkdtemp(join(tmpdir(), 'kit-connector-machine-'));
  const roots = { proc: join(dir, 'proc'), sys: join(dir, 'sys'), etc: join(dir, 'etc') };
  let count = 0;
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(join(dir, path, '..'), { recursive: true });
    // As the kernel answers: a reader gets all of it, before or after.
    const made = join(dir, `next-${(count += 1)}`);
    await writeFile(made, text);
    await rename(made, join(dir, path));
  };
  let present = true;
  const machine: FakeMachine = {
    roots,
    write,
    setCpu: async (busy, idle) =>
      write('proc/stat', `cpu  ${busy} 0 0 ${idle} 0 0 0 0 0 0\ncpu0 1 2 3 4\nintr 1\n`),
    async setInterface(about) {
      const made = join(dir, 'next', about.name);
      const place = join(dir, 'sys/class/net', about.name);
      await writeInterface(made, about);
      // In one turn of the event loop, so that a driver in this process never sees half of it.
      rmSync(place, { recursive: true, force: true });
      renameSync(made, place);
    },
    removeInterface: (name) => rmSync(join(dir, 'sys/class/net', name), { recursive: true, force: true }),
    setRoutes: async (routes) =>
      write(
        'proc/net/route',
        [
          'Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT',
          ...routes.map(
            ({ device, metric = 0 }) =>
              `${device}\t00000000\t0100000A\t0003\t0\t0\t${metric}\t00000000\t0\t0\t0`,
          ),
          '',
        ].join('\n'),
      ),
    async setPresent(now) {
      if (now === present) return;
      present = now;
      await (now ? rename(`${roots.proc}-away`, roots.proc) : rename(roots.proc, `${roots.proc}-away`));
    },
    remove: async () => rm(dir, { recursive: true, force: true }),
  };
  await machine.setCpu(1_000, 9_000);
  await write(
    'proc/meminfo',
    'MemTotal:        1000 kB\nMemFree:          100 kB\nMemAvailable:     400 kB\n',
  );
  await write('proc/uptime', '86400.55 160000.00\n');
  await write('etc/machine-id', '0123456789abcdef0123456789abcdef\n');
  await mkdir(join(roots.sys, 'class/net'), { recursive: true });
  return machine;
}

const ethernet = {
  type: 1,
  hardware: true,
  carrier: '1',
  operstate: 'up',
  ifindex: 2,
  rx_bytes: 0,
  tx_bytes: 0,
  flags: '0x1003',
};

async function writeInterface(dir: string, about: FakeInterface): Promise<void> {
  const { name, devtype, mac = '02:00:00:00:00:01', ...facts } = { ...ethernet, ...about };
  await mkdir(join(dir, 'statistics'), { recursive: true });
  const files = {
    type: facts.type,
    // Undefined: there is no such file, which reads like the EINVAL of an interface that is down.
    carrier: facts.carrier,
    operstate: facts.operstate,
    ifindex: facts.ifindex,
    uevent: `${devtype ? `DEVTYPE=${devtype}\n` : ''}INTERFACE=${name}\nIFINDEX=${facts.ifindex}`,
    addr_assign_type: 0,
    address: mac,
    flags: facts.flags,
    speed: facts.speed,
    mtu: facts.mtu,
    tun_flags: facts.tun ? '0x1' : undefined,
    'statistics/rx_bytes': facts.rx_bytes,
    'statistics/tx_bytes': facts.tx_bytes,
  };
  for (const [file, value] of Object.entries(files)) {
    if (value !== undefined) await writeFile(join(dir, file), `${value}\n`);
  }
  if (facts.hardware) await mkdir(join(dir, 'device'));
  if (facts.driver) await symlink(`../../bus/usb/drivers/${facts.driver}`, join(dir, 'device/driver'));
  if (facts.master) await symlink(`../${facts.master}`, join(dir, 'master'));
  for (const lower of facts.lowers ?? []) await symlink(`../${lower}`, join(dir, `lower_${lower}`));
  if (facts.wireless) await mkdir(join(dir, 'wireless'));
}
