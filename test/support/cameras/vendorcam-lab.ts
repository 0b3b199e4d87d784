/** The vendorcam driver in a real hub against fake cameras, with short waits, and one folder for all that is kept on disk. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type Limits, limits } from '../../../drivers/vendorcam/limits.ts';
import { vendorcamWith } from '../../../drivers/vendorcam/vendorcam.ts';
import { assetId } from '../../../src/contract/identity.ts';
import { channels } from '../../../src/contract/topics.ts';
import type { CommandContext } from '../../../src/toolkit/driver/command.ts';
import { FakeVendorCamera, type FakeVendorCameraOptions } from '../../fakes/fake-vendor-camera.ts';
import { hubLab, kit_id } from '../kit/hub-lab.ts';
import { makeDirectory, run } from '../temporary.ts';

export const quick_limits: Limits = {
  ...limits,
  request_ms: 1_500,
  urgent_wait_ms: 50,
  retry_first_ms: 50,
  retry_max_ms: 200,
  stable_ms: 1_000,
  may_pass_ms: [600, 1_200],
  again_ms: 20,
  busy_ms: 30,
  sessions_full_ms: 300,
  privacy_ms: 300,
  stop_gap_ms: 20,
  reboot_leaves_ms: 1_500,
  reboot_deadline_ms: 10_000,
  reboot_retry_ms: 50,
};

export const password = 'secret-Pass1';

interface Pem {
  readonly cert: string;
  readonly key: string;
}

/** A certificate that a device signed itself. */
export async function selfSigned(dir: string, name = 'camera'): Promise<Pem> {
  const cert = join(dir, `${name}.crt`);
  const key = join(dir, `${name}.key`);
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  await run('openssl', 'req', '-x509', ...kind, '-keyout', key, '-out', cert, '-subj', `/CN=${name}`);
  return { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') };
}

export type VendorcamLab = Awaited<ReturnType<typeof vendorcamLab>>;

/** `stop` ends the camera and every run of the driver. The driver runs from `start` on, and again after `restart`. */
export async function vendorcamLab(
  about: FakeVendorCameraOptions & { readonly secure?: boolean; readonly limits?: Partial<Limits> } = {},
) {
  const dir = await makeDirectory();
  const password_file = join(dir, 'password');
  await writeFile(password_file, `${password}\n`, { mode: 0o600 });
  const { secure = false, limits: more_limits, ...fake } = about;
  const camera = new FakeVendorCamera({ ...fake, ...(secure ? { tls: await selfSigned(dir) } : {}) });
  await camera.start();
  const driver = vendorcamWith({ ...quick_limits, ...more_limits });
  const open = () =>
    hubLab({ configured: ['cameras'], state_dir: join(dir, 'state'), rates: { default: 1_000 } });
  let hub = open();
  const lab = {
    dir,
    camera,
    driver,
    password_file,
    hostOptions: (more: object = {}) => ({
      name: 'gate',
      host: '127.0.0.1',
      port: camera.port,
      tls: secure,
      password_file,
      ...more,
    }),
    options: (host: object = {}, more: object = {}) => ({
      hosts: [lab.hostOptions(host)],
      poll_s: 0.2,
      poll_slow_s: 0.3,
      ptz_move_max_s: 0.5,
      ...more,
    }),
    get hub() {
      return hub;
    },
    start: (options: unknown = lab.options()) => {
      void hub.run(driver, 'cameras', { options });
    },
    /** As after a restart of the daemon. */
    restart: async (options?: unknown) => {
      await hub.stop();
      hub = open();
      lab.start(options);
    },
    asset: (name: string) => hub.hub.assets().find((asset) => asset.name === name),
    online: async (name = camera.channels.length > 1 ? 'NVR' : camera.camera.name) => {
      await hub.outbox.until((draft) => isEdge(draft, 'online') && lab.asset(name)?.status === 'online');
      return lab.asset(name);
    },
    offline: async () => {
      const draft = await hub.outbox.until((each) => isEdge(each, 'offline'));
      return JSON.stringify(draft.data?.['reason']);
    },
    /** What was published on a feed of the asset of this name, oldest first. */
    feed: (feed: string, name = camera.camera.name) =>
      hub.outbox.on(channels.event(lab.asset(name)?.id ?? '', feed)) as readonly Record<string, unknown>[],
    feedOf: (feed: string, asset_key: string) =>
      hub.outbox.on(channels.event(assetId(kit_id, asset_key), feed)) as readonly Record<string, unknown>[],
    /** Names of the commands that are offered. */
    offered: (name = camera.camera.name) => {
      const names = ['ptz_move', 'ptz_preset', 'set_motion_detection', 'reboot'];
      return names.filter((each) => 'command' in hub.hub.findCommand(lab.asset(name)?.id ?? '', each));
    },
    command: async (name: string, payload: object = {}, more: CommandOptions = {}) => {
      const found = hub.hub.findCommand(lab.asset(more.asset ?? camera.camera.name)?.id ?? '', name);
      if (!('command' in found)) throw new Error(found.refusal);
      const context: CommandContext = {
        signal: more.signal ?? new AbortController().signal,
        progress: () => undefined,
        remaining_ms: () => 60_000,
      };
      return found.command.read(payload).run(context);
    },
    stop: async () => {
      await hub.stop();
      await camera.stop();
    },
  };
  return lab;
}

/** Ends with the test. */
export async function runningLab(...about: Parameters<typeof vendorcamLab>): Promise<VendorcamLab> {
  const lab = await vendorcamLab(...about);
  onTestFinished(async () => lab.stop());
  return lab;
}

/** The camera is online; ends with the test. */
export async function servedLab(...about: Parameters<typeof vendorcamLab>): Promise<VendorcamLab> {
  const lab = await runningLab(...about);
  lab.start();
  await lab.online();
  return lab;
}

interface CommandOptions {
  readonly asset?: string;
  readonly signal?: AbortSignal;
}

function isEdge(
  draft: { readonly channel: string; readonly data: Readonly<Record<string, unknown>> | null },
  status: string,
): boolean {
  return draft.channel.endsWith('/asset_status') && draft.data?.['status'] === status;
}
