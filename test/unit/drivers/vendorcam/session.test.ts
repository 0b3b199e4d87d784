/** Sessions and certificates: no storm of logins, nothing left behind, and no password for a stranger. */
import { readdir, readFile, stat, chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { elapse } from '../../../support/elapse.ts';
import { eventually } from '../../../support/eventually.ts';
import {
  password,
  selfSigned,
  runningLab,
  servedLab,
  type VendorcamLab,
} from '../../../support/cameras/vendorcam-lab.ts';
import { limits as usual_limits } from '../../../../drivers/vendorcam/limits.ts';
import { okReply } from '../../../../drivers/vendorcam/sim/channel.ts';
import { texts } from '../../../../drivers/vendorcam/texts.ts';

const rejected = async ({ hub }: VendorcamLab): Promise<string> => {
  await eventually('the driver is rejected', () => hub.hub.drivers()[0]?.state === 'rejected');
  return hub.hub.drivers()[0]?.reason ?? '';
};

describe('the session', () => {
  it('is one for all polls and commands and ends with the connector', async () => {
    const { camera, hub, command } = await servedLab();
    await command('ptz_preset', { preset_id: 1 });
    await eventually('some polls', () => camera.requests > 10);
    expect(camera.sessions).toMatchObject({ logins: 1, open: 1 });
    await hub.stop();
    expect(camera.sessions).toMatchObject({ logins: 1, logouts: 1, open: 0 });
  });

  it('is used again after a start that follows no proper stop', async () => {
    const { camera, online, hub, restart } = await servedLab();
    await camera.lose();
    await hub.stop();
    expect(camera.sessions.open).toBe(1);
    await camera.start();
    await restart();
    await online();
    expect(camera.sessions).toMatchObject({ logins: 1, open: 1 });
  });

  it('is kept in a file that only the daemon may read', async () => {
    const { dir } = await servedLab();
    const files = await readdir(dir, { recursive: true });
    const file = files.find((name) => /host-[0-9a-f]+\.json$/u.test(name));
    expect(file).toBeDefined();
    const path = join(dir, file ?? '');
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await readFile(path, 'utf8')).not.toContain(password);
  });

  it('is renewed before its lease ends, with the old one given back first', async () => {
    const { camera, start, online } = await runningLab();
    camera.sessions.lease_s = 1;
    start();
    await online();
    await eventually('it was renewed', () => camera.sessions.logins >= 3);
    expect(camera.sessions.open).toBe(1);
    expect(camera.sessions.logouts).toBe(camera.sessions.logins - 1);
  });

  it('is opened once more when the device has forgotten it', async () => {
    const { camera, hub, feed } = await servedLab();
    camera.sessions.forgetAll();
    camera.camera.motion = true;
    await eventually('motion is told', () => feed('motion').at(-1)?.['detected'] === true);
    expect(camera.sessions.logins).toBe(2);
    expect(hub.outbox.drafts.filter((draft) => draft.data?.['status'] === 'offline')).toEqual([]);
  });
});

it('a session whose token fits no address is none, and the camera is served once it gives another', async () => {
  const { camera, start, online, hub } = await runningLab();
  const { sessions } = camera;
  const login = sessions.login.bind(sessions);
  const lone = String.fromCharCode(0xd8_00);
  sessions.login = () => okReply('Login', { Token: { leaseTime: 1e300, name: lone } });
  start();
  await eventually('it is said', () => JSON.stringify(hub.log.lines).includes(texts.login_no_session));
  sessions.login = login;
  await online();
});

describe('a refused login', () => {
  it.each([
    { code: -7, detail: 'login failed', says: /user name or password rejected/u },
    { code: -27, detail: 'invalid user', says: /user name or password rejected/u },
    { code: -1, detail: 'password wrong', says: /user name or password rejected/u },
    { code: -501, detail: 'The user does not exist', says: /no such user/u },
    // home-assistant/core#177363, #181837.
    { code: -503, detail: 'login deny', says: /denies the login and does not say why.*-503: login deny/u },
    { code: -506, detail: 'Login has been locked', says: /account is locked/u },
  ])('with $code ends all attempts, also after a restart', async ({ code, detail, says }) => {
    const it = await runningLab();
    it.camera.sessions.refuseWith = { code, detail };
    it.start();
    expect(await rejected(it)).toMatch(says);
    await it.restart();
    expect(await rejected(it)).toMatch(says);
    await elapse(300);
    expect(it.camera.sessions.logins).toBe(1);
    expect(it.hub.hub.assets()).toEqual([]);
    expect(JSON.stringify(it.hub.log.lines)).not.toContain(password);
  });

  it('is tried at once with another password', async () => {
    const it = await runningLab();
    await writeFile(it.password_file, 'wrong');
    it.start();
    await rejected(it);
    await writeFile(it.password_file, password);
    await it.restart();
    await it.online();
    expect(it.camera.sessions).toMatchObject({ failures: 1, logins: 2 });
  });

  it('ends soon when another client locked the account: this password was accepted before', async () => {
    const it = await runningLab();
    const away = it.hostOptions({ name: 'away', host: '127.0.0.2' });
    it.start({ ...it.options(), hosts: [it.hostOptions(), away] });
    await it.online();
    it.camera.sessions.refuseWith = { code: -505, detail: 'Login has been locked' };
    await it.camera.lose();
    it.camera.sessions.forgetAll();
    await it.camera.start();
    const device = () => it.hub.hub.drivers()[0]?.devices?.find(({ name }) => name === 'gate');
    await eventually('it is rejected', () => device()?.state === 'rejected');
    expect(device()?.reason).toMatch(/locked.*-505: Login has been locked/u);
    const asset = it.asset(it.camera.camera.name);
    expect(asset?.reason).toContain(device()?.next_try_at);
    const { logins } = it.camera.sessions;
    it.camera.sessions.refuseWith = undefined;
    await eventually('it is online', () => device()?.state === 'online');
    expect(it.camera.sessions.logins - logins).toBeLessThanOrEqual(2);
  });

  it('leaves the account unlocked when the password was changed on the camera', async () => {
    const may_pass_ms = usual_limits.may_pass_ms.map((pause_ms) => pause_ms / 2_000);
    const it = await runningLab({ limits: { may_pass_ms } });
    const away = it.hostOptions({ name: 'away', host: '127.0.0.2' });
    it.start({ ...it.options(), hosts: [it.hostOptions(), away] });
    await it.online();
    it.camera.sessions.password = 'another';
    it.camera.sessions.forgetAll();
    const device = () => it.hub.hub.drivers()[0]?.devices?.find(({ name }) => name === 'gate');
    const next_try = () => Date.parse(device()?.next_try_at ?? '');
    const rarely_ms = usual_limits.rejected_first_ms / 4;
    await eventually('it is tried rarely', () => next_try() > Date.now() + rarely_ms);
    await writeFile(it.password_file, 'another');
    await it.restart();
    await it.online();
  });

  it('is opened when the password was corrected on the camera, without a new configuration', async () => {
    const limits = { refused_ms: 100, rejected_first_ms: 500, rejected_max_ms: 500 };
    const it = await runningLab({ limits });
    it.camera.sessions.password = 'another';
    const away = it.hostOptions({ name: 'away', host: '127.0.0.2' });
    it.start({ ...it.options(), hosts: [it.hostOptions(), away] });
    await eventually('it is logged', () => it.hub.log.at('error').length === 1);
    it.camera.sessions.password = password;
    await it.online();
    expect(it.hub.log.at('error')).toEqual(['device cannot be served; retrying rarely']);
    expect(it.camera.sessions.failures).toBeLessThanOrEqual(2);
  });

  it.each([
    { code: -5, detail: 'max session', says: /all sessions of the device are in use/u },
    { code: -507, detail: 'Login reach max', says: /takes no more logins/u },
    { code: -105, detail: 'Frequent logins, please try again later!', says: /too many logins|for a while/u },
    { code: -1, detail: 'privacy mode', says: /privacy mode is on/u },
  ])('with $code is tried again later, and rarely', async ({ code, detail, says }) => {
    const it = await runningLab();
    it.camera.sessions.refuseWith = { code, detail };
    it.start();
    await eventually('it is said', () => JSON.stringify(it.hub.log.lines).includes('device is unavailable'));
    expect(JSON.stringify(it.hub.log.lines)).toMatch(says);
    expect(it.camera.sessions.logins).toBe(1);
    it.camera.sessions.refuseWith = undefined;
    await it.online();
    expect(it.camera.sessions.logins).toBe(2);
  });

  it.each([
    { fault: 'is missing', text: undefined, mode: 0o600, says: /cannot be read/u },
    { fault: 'is empty', text: '\n', mode: 0o600, says: /is empty/u },
    { fault: 'is open to everybody', text: password, mode: 0o644, says: /run "chmod o=/u },
    { fault: 'is too long', text: 'x'.repeat(32), mode: 0o600, says: /more than 31 characters/u },
  ])('never happens when the password file $fault', async ({ text, mode, says }) => {
    const it = await runningLab();
    if (text !== undefined) await writeFile(it.password_file, text);
    await chmod(it.password_file, mode);
    const file = text === undefined ? { password_file: join(it.dir, 'none') } : {};
    it.start(it.options(file));
    expect(await rejected(it)).toMatch(says);
    expect(it.camera.requests).toBe(0);
  });
});

it('a login that was accepted before and is refused now is not called a wrong password (home-assistant/core#135652, #113379)', async () => {
  const it = await servedLab();
  it.camera.sessions.refuseWith = { code: -7, detail: 'login failed' };
  it.camera.sessions.forgetAll();
  const device = () => it.hub.hub.drivers()[0]?.devices?.find(({ name }) => name === 'gate');
  await eventually('it is refused', () => device()?.state === 'rejected');
  expect(device()?.reason).toMatch(/accepted before.*-7: login failed/u);
  it.camera.sessions.refuseWith = undefined;
  await eventually('it is online', () => device()?.state === 'online');
});

describe('the path of the interface', () => {
  // ispysoftware/iSpy#182 (the page of the report; that it is served at this path is assumed), koush/scrypted#473.
  const page =
    '<!DOCTYPE html><html lang=en data-application=web><head><title id=appTitle>Reolink</title></head></html>';

  it.each([
    ['a page', { status: 200, body: page }],
    ['status 404', { status: 404, body: '' }],
  ])('is the other one where the first has %s, found with one login', async (_what, elsewhere) => {
    const it = await runningLab();
    it.camera.paths = ['/cgi-bin/api.cgi'];
    it.camera.elsewhere = elsewhere;
    it.start();
    await it.online();
    expect(it.camera.sessions).toMatchObject({ logins: 1, open: 1 });
    expect(it.hub.log.at('warn')).toEqual([texts.no_tls]);
  });

  it('is at neither, and both are named with what is there', async () => {
    const it = await runningLab();
    it.camera.paths = [];
    it.camera.elsewhere = { status: 200, body: page };
    it.start();
    await eventually('it is said', () => JSON.stringify(it.hub.log.lines).includes(texts.no_interface(200)));
    expect(it.camera.sessions.logins).toBe(0);
  });

  it('is not left because of one page while the camera is busy', async () => {
    const it = await servedLab();
    it.camera.mood = 'garbage';
    await eventually('it is polled', () => it.camera.requests > 5);
    it.camera.mood = 'well';
    await it.online();
    expect(it.camera.sessions.logins).toBe(1);
  });

  it('has HTTPS alone, as the web server of the device itself says', async () => {
    const it = await runningLab();
    it.camera.paths = [];
    it.camera.elsewhere = {
      status: 400,
      body: '<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head></html>',
    };
    it.start();
    await eventually('it is said', () =>
      JSON.stringify(it.hub.log.lines).includes(texts.http_status(400, texts.needs_https)),
    );
  });
});

describe('the certificate', () => {
  it('of the first contact is the only one accepted, and a stranger gets no password', async () => {
    const it = await servedLab({ secure: true });
    await it.hub.stop();
    const { requests } = it.camera;
    await it.camera.lose();
    it.camera.showCertificate(await selfSigned(it.dir, 'stranger'));
    await it.camera.start();
    await it.restart();
    const reason = await rejected(it);
    expect(reason).toMatch(/another certificate than before .* password was not sent.*certificate_sha256/su);
    expect(it.camera.requests).toBe(requests);
    const fingerprint = /now ([0-9A-F:]{95})/u.exec(reason)?.[1];
    await it.restart(it.options({ certificate_sha256: fingerprint }));
    await it.online();
  });

  it('ends the session with a warning when it changes while the camera is served', async () => {
    const it = await servedLab({ secure: true });
    await it.camera.lose();
    it.camera.showCertificate(await selfSigned(it.dir, 'stranger'));
    const { requests } = it.camera;
    await it.camera.start();
    expect(await rejected(it)).toMatch(/another certificate/u);
    expect(it.camera.requests).toBe(requests);
  });

  it('is demanded at the first contact too when the options name it', async () => {
    const it = await runningLab({ secure: true });
    it.start(it.options({ certificate_sha256: '00'.repeat(32) }));
    expect(await rejected(it)).toMatch(/another certificate/u);
    expect(it.camera.requests).toBe(0);
  });

  it('is done without where TLS is off, with a warning', async () => {
    const it = await servedLab();
    expect(it.hub.log.at('warn')).toContain(texts.no_tls);
  });
});
