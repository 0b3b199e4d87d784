/** A directory that looks like /proc, /sys and /etc of a gateway, as far as the gateway driver reads them. */
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
  readonly carrier?: '0' | '1';
  readonly operstate?: string;
  readonly ifindex?: number;
  readonly rx_bytes?: number;
  readonly tx_bytes?: number;
  readonly mac?: string;
}

export interface FakeMachine {
  readonly roots: { readonly proc: string; readonly sys: string; readonly etc: string };
  /** Busy and idle ticks since boot. */
  setCpu(busy: number, idle: number): Promise<void>;
  setInterface(about: FakeInterface): Promise<void>;
  /** Writes one file below `proc`, `sys` or `etc`. */
  write(path: string, text: string): Promise<void>;
  /** /proc is gone, or back. */
  setPresent(present: boolean): Promise<void>;
  remove(): Promise<void>;
}

export async function fakeMachine(): Promise<FakeMachine> {
  const dir = await mkdtemp(join(tmpdir(), 'kit-connector-machine-'));
  const roots = { proc: join(dir, 'proc'), sys: join(dir, 'sys'), etc: join(dir, 'etc') };
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(join(dir, path, '..'), { recursive: true });
    await writeFile(join(dir, path), text);
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
};

async function writeInterface(dir: string, about: FakeInterface): Promise<void> {
  const { name, devtype, mac = '02:00:00:00:00:01', ...facts } = { ...ethernet, ...about };
  await mkdir(join(dir, 'statistics'), { recursive: true });
  const files = {
    type: facts.type,
    carrier: facts.carrier,
    operstate: facts.operstate,
    ifindex: facts.ifindex,
    uevent: `${devtype ? `DEVTYPE=${devtype}\n` : ''}INTERFACE=${name}\nIFINDEX=${facts.ifindex}`,
    addr_assign_type: 0,
    address: mac,
    'statistics/rx_bytes': facts.rx_bytes,
    'statistics/tx_bytes': facts.tx_bytes,
  };
  for (const [file, value] of Object.entries(files)) await writeFile(join(dir, file), `${value}\n`);
  if (facts.hardware) await mkdir(join(dir, 'device'));
  if (facts.driver) await symlink(`../../bus/usb/drivers/${facts.driver}`, join(dir, 'device/driver'));
  if (facts.master) await symlink(`../${facts.master}`, join(dir, 'master'));
  if (facts.wireless) await mkdir(join(dir, 'wireless'));
}
