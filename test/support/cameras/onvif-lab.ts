/** The onvif driver in a hub, with fake cameras and their password files. */
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import { type Limits, limits } from '../../../drivers/onvif/limits.ts';
import { onvif, onvifWith } from '../../../drivers/onvif/onvif.ts';
import type { HubOptions } from '../../../src/kit/hub/hub.ts';
import type { CommandContext } from '../../../src/toolkit/driver/command.ts';
import type { Draft } from '../../../src/kit/outbox/api.ts';
import { type FakeCamera, startFakeCamera } from '../../fakes/fake-onvif-camera.ts';
import { hubLab } from '../kit/hub-lab.ts';

export interface CameraLab {
  /** Options for this camera; `more` replaces some. */
  entry(camera: FakeCamera, more?: object): Promise<Record<string, unknown>>;
  /** A hub whose files are kept between two of them, as over a restart. */
  run(
    options: object,
    more?: { readonly limits?: Partial<Limits> } & Partial<HubOptions>,
  ): ReturnType<typeof hubLab>;
  stop(): Promise<void>;
}

export async function cameraLab(): Promise<CameraLab> {
  const dir = await mkdtemp(join(tmpdir(), 'kit-connector-'));
  const labs: ReturnType<typeof hubLab>[] = [];
  let files = 0;
  return {
    async entry({ port, settings }, more = {}) {
      const password_file = join(dir, `password-${++files}`);
      await writeFile(password_file, `${settings.password}\n`, { mode: 0o600 });
      await chmod(password_file, 0o600);
      const login = settings.auth === 'none' ? {} : { username: settings.username, password_file };
      return { name: `camera ${port}`, host: '127.0.0.1', port, ...login, ...more };
    },
    run(options, { limits: quick, ...more } = {}) {
      const state_dir = join(dir, 'state');
      const lab = hubLab({ configured: ['cameras'], rates: { default: 1_000_000 }, state_dir, ...more });
      labs.push(lab);
      const driver = quick ? onvifWith({ ...limits, ...quick }) : onvif;
      void lab.run(driver, 'cameras', { options: { pull_s: 5, ...options } });
      return lab;
    },
    async stop() {
      for (const lab of labs) await lab.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** A hub of its own for each test of the file, and the cameras that the test starts. */
export function labOfEachTest() {
  let lab: CameraLab;
  const cameras: FakeCamera[] = [];
  beforeEach(async () => {
    lab = await cameraLab();
  });
  afterEach(async () => {
    await lab.stop();
    for (const camera of cameras.splice(0)) await camera.stop();
  });
  const start = async (...about: Parameters<typeof startFakeCamera>): Promise<FakeCamera> => {
    const camera = await startFakeCamera(...about);
    cameras.push(camera);
    return camera;
  };
  const entry = async (...about: Parameters<CameraLab['entry']>) => lab.entry(...about);
  const run = (...about: Parameters<CameraLab['run']>) => lab.run(...about);
  const serve = async (camera: FakeCamera) => {
    const running = run({ cameras: [await entry(camera)] });
    await running.outbox.until(isStatus('online'));
    return running;
  };
  return {
    start,
    entry,
    run,
    /** Runs the driver with this camera alone, which is online then. */
    serve,
    /** The same with a camera of these settings. */
    async startServed(...about: Parameters<typeof startFakeCamera>) {
      const camera = await start(...about);
      return { camera, ...(await serve(camera)) };
    },
  };
}

/** The same with a camera that expects WS-Security. */
export function sceneOfEachTest() {
  const scene = { lab: labOfEachTest() } as { lab: ReturnType<typeof labOfEachTest>; camera: FakeCamera };
  beforeEach(async () => {
    scene.camera = await scene.lab.start({ auth: 'ws_security' });
  });
  return scene;
}

/** Finds the messages of a feed, wherever the asset is. */
export const said =
  (feed: string, fits: (data: Readonly<Record<string, unknown>>) => boolean = () => true) =>
  (draft: Draft): boolean =>
    draft.channel.endsWith(`/${feed}`) && draft.data !== null && fits({ ...draft.data });

/** Finds the message that a camera has this status. */
export const isStatus = (status: string) => said('asset_status', (data) => data['status'] === status);

/** A command as the task runner would call it, with a signal of the test. */
export function context(signal = new AbortController().signal, remaining_ms = 30_000): CommandContext {
  return { signal, progress: () => undefined, remaining_ms: () => remaining_ms };
}
