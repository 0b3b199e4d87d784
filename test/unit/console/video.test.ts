/** The page's player against a WHEP server that a test can refuse, freeze and take away. */
import type { Browser } from 'playwright-core';
import type { WhepAnswer } from '../../../src/contract/whep.ts';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type FakeWhep, startFakeWhep } from '../../fakes/services/fake-whep.ts';
import { eventually } from '../../support/eventually.ts';
import {
  announce,
  ids,
  openPage,
  page_kit_id,
  type PageLab,
  startBrowser,
} from '../../support/service/page-lab.ts';
import { peerMissing } from '../../support/peers.ts';

describe.skipIf(peerMissing('chromium-headless-shell'))('the video of a camera', () => {
  let browser: Browser;
  let whep: FakeWhep;
  let lab: PageLab;
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(async () => browser.close());
  beforeEach(async () => {
    whep = await startFakeWhep(browser);
    lab = await openPage(browser, { media_origins: [whep.origin] });
    const camera = { name: 'Gate', type: 'camera', protocol: 'onvif', feeds: [] };
    await announce(lab.lab, ids.camera, { ...camera, whep_url: `${whep.origin}/gate/whep` });
    await lab.page.locator('.asset-row', { hasText: 'Gate' }).click();
  });
  afterEach(async () => {
    await lab.stop();
    await whep.stop();
  });

  it('plays, reports when the picture stands still though the connection does not end, and releases the stream', async () => {
    const { page } = lab;
    await page.locator('.video .rec').waitFor();
    await whep.freeze();
    await page.getByText(/No new picture for \d+ s/u).waitFor();
    await page.goto(`${lab.url}/#/k/${page_kit_id}/assets`);
    await eventually('the stream is given back', () => whep.requests.includes('DELETE /gate/whep/1'));
    expect(await page.locator('video').count()).toBe(0);
    expect(lab.complaints).toEqual([]);
  });

  it.each([
    ['a script', 'javascript:document.title="broken"'],
    ['a data address', 'data:application/sdp,v=0'],
    ['a file', 'file:///etc/passwd'],
    ['a server that the policy does not name', 'http://127.0.0.1:9/gate/whep'],
    ['a server with a password', 'http://a:b@127.0.0.1:9/gate/whep'],
  ])('asks nobody where the address is %s', async (_, whep_url) => {
    const { page } = lab;
    const camera = { name: 'Fence', type: 'camera', protocol: 'onvif', feeds: [], whep_url };
    await announce(lab.lab, ids.silent, camera);
    await page.goto(`${lab.url}/#/k/${page_kit_id}/a/${ids.silent}`);
    await page.getByText(/No video: the stream address/u).waitFor();
    expect(whep.requests.filter((each) => !each.includes('/gate/'))).toEqual([]);
    expect(lab.strangers).toEqual([]);
    expect(await page.title()).toMatch(/^(?:\(\d+\) )?Fence – Kit Seven$/u);
    expect(page.url()).toContain(lab.url);
    expect(await page.locator('a[href^="javascript:"], a[href^="data:"]').count()).toBe(0);
  });

  // https://github.com/jech/galene/issues/51, https://github.com/UWNetworksLab/uProxy-p2p/issues/1274: off by a setting, an extension, Lockdown Mode.
  it('says that the browser has no WebRTC, and asks nobody', async () => {
    const { page } = lab;
    await page.goto(`${lab.url}/#/k/${page_kit_id}/assets`);
    await page.evaluate(() => Reflect.deleteProperty(globalThis, 'RTCPeerConnection'));
    const before = whep.requests.filter((each) => each.startsWith('POST')).length;
    await page.goto(`${lab.url}/#/k/${page_kit_id}/a/${ids.camera}`);
    await page.getByText('WebRTC is switched off in this browser').waitFor();
    expect(whep.requests.filter((each) => each.startsWith('POST'))).toHaveLength(before);
  });

  // https://github.com/0x2E/fusion/issues/186, https://github.com/notjuliet/pdsls/issues/27: `URL.parse` came with Safari 18 and Chrome 126.
  it('plays on a tablet of 2023', async () => {
    const { page } = lab;
    await page.locator('.video .rec').waitFor();
    await page.goto(`${lab.url}/#/k/${page_kit_id}/assets`);
    await page.evaluate(() => Reflect.deleteProperty(URL, 'parse'));
    await page.goto(`${lab.url}/#/k/${page_kit_id}/a/${ids.camera}`);
    await page.locator('.video .rec').waitFor();
    expect(await page.locator('.video').textContent()).toContain('Live');
  });

  // https://github.com/Eyevinn/webrtc-player/pull/114, https://github.com/twilio/twilio-video.js/issues/128
  it('tries again at once when the phone is back in a network', async () => {
    const { page } = lab;
    await page.locator('.video .rec').waitFor();
    whep.refusal = { status: 500, body: '' };
    await page.goto(`${lab.url}/#/k/${page_kit_id}/assets`);
    await page.evaluate(() => {
      const { setTimeout: later } = globalThis;
      // The pause before the third attempt never ends by itself.
      Reflect.set(globalThis, 'setTimeout', (act: () => void, ms: number) =>
        ms === 2_000 ? 0 : later(act, ms),
      );
    });
    await page.goto(`${lab.url}/#/k/${page_kit_id}/a/${ids.camera}`);
    await page.getByText('Trying again in 2 s').waitFor();
    whep.refusal = undefined;
    await page.evaluate(() => dispatchEvent(new Event('online')));
    await page.locator('.video .rec').waitFor();
    expect(lab.complaints.filter((each) => !each.includes('500'))).toEqual([]);
  });

  it.each([
    [404, 'the media server has no stream of this camera now'],
    [400, 'set its sub-stream to H.264'],
    [500, 'the media server answered 500'],
  ])('explains the answer %i, tries again, and plays when it can', async (status, words) => {
    whep.refusal = { status, body: '{"error":"<b>no</b>"}' };
    await lab.page.goto(`${lab.url}/#/k/${page_kit_id}/assets`);
    await lab.page.goto(`${lab.url}/#/k/${page_kit_id}/a/${ids.camera}`);
    await lab.page.getByText(words).waitFor();
    whep.refusal = undefined;
    await lab.page.locator('.video .rec').waitFor();
    expect(whep.requests.filter((each) => each.startsWith('POST')).length).toBeGreaterThan(1);
  });
});

describe.skipIf(peerMissing('chromium-headless-shell'))('the video of a camera elsewhere', () => {
  let browser: Browser;
  let whep: FakeWhep;
  let lab: PageLab;
  let refusal: WhepAnswer | undefined;
  const left: string[] = [];
  const path = `/api/kits/${page_kit_id}/assets/${ids.camera}/whep`;
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(async () => browser.close());
  beforeEach(async () => {
    refusal = undefined;
    left.length = 0;
    whep = await startFakeWhep(browser);
    lab = await openPage(browser, {
      video: {
        async watch(_, { offer }) {
          if (refusal) return refusal;
          const headers = { 'content-type': 'application/sdp' };
          const response = await fetch(`${whep.origin}/gate/whep`, { method: 'POST', headers, body: offer });
          return { answer: await response.text() };
        },
        leave: async (_, { id }) => void left.push(id),
      },
      video_settings: { stun: ['stun:127.0.0.1:9'], turn: undefined },
    });
    const camera = { name: 'Gate', type: 'camera', protocol: 'onvif', feeds: [] };
    await announce(lab.lab, ids.camera, { ...camera, whep_url: path });
    await lab.page.locator('.asset-row', { hasText: 'Gate' }).click();
  });
  afterEach(async () => {
    await lab.stop();
    await whep.stop();
  });

  it('plays through the service by the same player, and is ended there', async () => {
    const { page } = lab;
    await page.locator('.video .rec').waitFor();
    await page.goto(`${lab.url}/#/k/${page_kit_id}/assets`);
    await eventually('the kit is told', () => left.length === 1);
    expect(lab.complaints).toEqual([]);
    expect(lab.strangers).toEqual([]);
  });

  it('offers once the transport that picture and sound share has a relay, not the other one', async () => {
    const { page } = lab;
    await page.goto(`${lab.url}/#/k/${page_kit_id}/assets`);
    await page.evaluate(() => {
      const offered: boolean[] = [];
      let isReady = false;
      const send = globalThis.fetch;
      globalThis.fetch = async (input, init) => {
        if (init?.method === 'POST') offered.push(isReady);
        return send(input, init);
      };
      const relayed = (sdpMLineIndex: number): Event =>
        Object.assign(new Event('icecandidate'), { candidate: { type: 'relay', sdpMLineIndex } });
      globalThis.RTCPeerConnection = class extends RTCPeerConnection {
        override get iceGatheringState(): RTCIceGatheringState {
          return 'gathering';
        }
        override async setLocalDescription(description?: RTCLocalSessionDescriptionInit): Promise<void> {
          await super.setLocalDescription(description);
          setTimeout(() => this.dispatchEvent(relayed(1)));
          setTimeout(() => {
            isReady = true;
            this.dispatchEvent(relayed(0));
          }, 300);
        }
      };
      Object.assign(globalThis, { offered });
    });
    await page.goto(`${lab.url}/#/k/${page_kit_id}/a/${ids.camera}`);
    await page.locator('.video .rec').waitFor();
    expect(await page.evaluate((): unknown => Reflect.get(globalThis, 'offered'))).toEqual([true]);
  });

  it.each<[WhepAnswer, string]>([
    [
      { refused: 'link', reason: 'not over satellite' },
      'sends no video over its link now (not over satellite)',
    ],
    [{ refused: 'codec', reason: 'H265' }, 'set its sub-stream to H.264 (H265)'],
    [{ refused: 'no_stream', reason: 'no media server' }, 'has no video at its kit (no media server)'],
    [{ refused: 'unavailable', reason: 'rebooting' }, 'gives no video now (rebooting)'],
  ])('says what is missing: %j', async (answer, words) => {
    await lab.page.goto(`${lab.url}/#/k/${page_kit_id}/assets`);
    refusal = answer;
    await lab.page.goto(`${lab.url}/#/k/${page_kit_id}/a/${ids.camera}`);
    await lab.page.getByText(words).waitFor();
    expect(lab.strangers).toEqual([]);
  });
});
