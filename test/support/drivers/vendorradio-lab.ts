/** The vendorradio driver in a real hub against fake radios, with short waits, and one folder for all that is kept on disk. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Limits, limits } from '../../../drivers/vendorradio/limits.ts';
import { vendorradioWith } from '../../../drivers/vendorradio/vendorradio.ts';
import type { CommandContext } from '../../../src/toolkit/driver/command.ts';
import { FakeRadio, type FakeRadioOptions } from '../../fakes/fake-radio.ts';
import { eventually } from '../eventually.ts';
import { hubLab } from '../kit/hub-lab.ts';
import { makeDirectory, run } from '../temporary.ts';

export const quick_limits: Limits = {
  ...limits,
  request_ms: 1_500,
  retry_first_ms: 50,
  retry_max_ms: 200,
  rpcd_retry_ms: 50,
  rightless_retry_ms: 300,
  look_ms: 50,
  confirm_margin_ms: 500,
  revert_ms: 2_000,
  mesh_switch_ms: 3_000,
  reboot_ms: 8_000,
  snmp_timeout_ms: 500,
};

/** A certificate that a radio signed itself. */
export async function selfSignedRadio(dir: string, name: string) {
  const cert = join(dir, `${name}.crt`);
  const key = join(dir, `${name}.key`);
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  await run('openssl', 'req', '-x509', ...kind, '-keyout', key, '-out', cert, '-subj', `/CN=${name}`);
  return { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') };
}

export type VendorradioLab = Awaited<ReturnType<typeof vendorradioLab>>;

/** `stop` ends the radio and every run of the driver. */
export async function vendorradioLab(about: FakeRadioOptions & { readonly limits?: Partial<Limits> } = {}) {
  const { limits: more_limits, ...fake } = about;
  const dir = await makeDirectory();
  const password_file = join(dir, 'password');
  await writeFile(password_file, 'secret\n', { mode: 0o600 });
  const radio = new FakeRadio(fake);
  await radio.start();
  const driver = vendorradioWith({ ...quick_limits, ...more_limits });
  const open = () =>
    hubLab({ configured: ['radios'], state_dir: join(dir, 'state'), rates: { default: 1_000 } });
  let hub = open();
  const lab = {
    dir,
    radio,
    driver,
    password_file,
    radioOptions: (more: object = {}) => ({
      kind: 'ubus',
      name: 'mast',
      host: '127.0.0.1',
      port: radio.port,
      tls: fake.tls !== undefined,
      username: 'kit',
      password_file,
      ...more,
    }),
    options: (one: object = {}, more: object = {}) => ({
      radios: [lab.radioOptions(one)],
      poll_s: 0.1,
      snmp_poll_s: 0.1,
      rollback_s: 10,
      ...more,
    }),
    get hub() {
      return hub;
    },
    start: (options: unknown = lab.options()) => {
      void hub.run(driver, 'radios', { options });
    },
    /** As after a restart of the daemon. */
    restart: async (options?: unknown) => {
      await hub.stop();
      hub = open();
      lab.start(options);
    },
    /** The configured radios as status and doctor show them. */
    devices: () => hub.hub.drivers()[0]?.devices ?? [],
    asset: (name = 'mast') => hub.hub.assets().find((asset) => asset.name === name),
    /** What was announced of the asset of this name, newest. */
    announced: (name = 'mast') => hub.outbox.on(`asset/${lab.asset(name)?.id ?? ''}`).at(-1),
    until: async (status: 'online' | 'offline', name = 'mast') => {
      await eventually(`${name} is ${status}`, () => lab.asset(name)?.status === status);
      return lab.asset(name);
    },
    /** What was published on a feed of the asset of this name, oldest first. */
    feed: (feed: string, name = 'mast') => {
      const id = lab.asset(name)?.id ?? '';
      return hub.outbox.drafts
        .filter(({ channel }) => channel.endsWith(`/${id}/${feed}`))
        .map(({ data }) => data) as readonly Record<string, unknown>[];
    },
    /** The newest message of a feed, once it is as the test wants it. */
    newest: async (feed: string, fits: (message: Record<string, unknown>) => boolean, name = 'mast') => {
      const found = () => lab.feed(feed, name).findLast(fits);
      await eventually(
        `${feed} of ${name} is as wanted; last ${JSON.stringify(lab.feed(feed, name).at(-1))}`,
        () => found() !== undefined,
      );
      return found() ?? {};
    },
    offered: (name = 'mast') => {
      const names = [
        'refresh',
        'identify',
        'scan',
        'set_txpower',
        'set_channel',
        'set_mesh_channel',
        'reboot',
      ];
      return names.filter((each) => 'command' in hub.hub.findCommand(lab.asset(name)?.id ?? '', each));
    },
    command: async (name: string, payload: object = {}, signal = new AbortController().signal) => {
      const found = hub.hub.findCommand(lab.asset()?.id ?? '', name);
      if (!('command' in found)) throw new Error(found.refusal);
      const context: CommandContext = { signal, progress: () => undefined, remaining_ms: () => 60_000 };
      return found.command.read(payload).run(context);
    },
    logged: (sentence: RegExp) => hub.log.lines.filter((line) => sentence.test(JSON.stringify(line))),
    stop: async () => {
      await hub.stop();
      await radio.stop();
    },
  };
  return lab;
}

/** The same, with the radio online. */
export async function servedRadio(...about: Parameters<typeof vendorradioLab>) {
  const lab = await vendorradioLab(...about);
  lab.start();
  await lab.until('online');
  return lab;
}
