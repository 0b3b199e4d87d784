/** A media server that follows WHEP and is itself a browser: it sends the moving picture of a canvas, and can stop moving. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser } from 'playwright-core';

export interface FakeWhep {
  readonly origin: string;
  /** `METHOD path` of every request but preflights. */
  readonly requests: readonly string[];
  /** Answers requests for a stream with this instead. */
  refusal: { readonly status: number; readonly body: string } | undefined;
  /** The picture stands still from now on; the connection stays. */
  freeze(): Promise<void>;
  stop(): Promise<void>;
}

declare global {
  var drawing: ReturnType<typeof setInterval>;
}

const cors = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Methods': 'POST, DELETE',
  'Access-Control-Allow-Headers': 'Content-Type',
  'Access-Control-Expose-Headers': 'Location',
} as const;

export async function startFakeWhep(browser: Browser): Promise<FakeWhep> {
  const context = await browser.newContext();
  const camera = await context.newPage();
  const requests: string[] = [];
  let refusal: FakeWhep['refusal'];
  const server = createServer((request, response) => {
    const answer = async (): Promise<void> => {
      if (request.method === 'OPTIONS') return void response.writeHead(204, cors).end();
      requests.push(`${request.method} ${request.url}`);
      if (request.method === 'DELETE') return void response.writeHead(200, cors).end();
      if (refusal) return void response.writeHead(refusal.status, cors).end(refusal.body);
      let offer = '';
      for await (const chunk of request) offer += String(chunk);
      const sdp = await camera.evaluate(answerOffer, offer);
      response.writeHead(201, { ...cors, 'Content-Type': 'application/sdp', Location: `${request.url}/1` });
      return void response.end(sdp);
    };
    answer().catch(() => response.writeHead(500, cors).end());
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    get refusal() {
      return refusal;
    },
    set refusal(next) {
      refusal = next;
    },
    freeze: async () => camera.evaluate(() => clearInterval(globalThis.drawing)),
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
      await context.close();
    },
  };
}

/** Runs in the browser. */
async function answerOffer(offer: string): Promise<string> {
  const canvas = document.createElement('canvas');
  canvas.width = 160;
  canvas.height = 90;
  const pen = canvas.getContext('2d');
  let hue = 0;
  globalThis.drawing = setInterval(() => {
    if (!pen) return;
    pen.fillStyle = `hsl(${(hue += 5)} 80% 50%)`;
    pen.fillRect(0, 0, 160, 90);
  }, 50);
  const peer = new RTCPeerConnection({ iceServers: [] });
  const [track] = canvas.captureStream(20).getVideoTracks();
  await peer.setRemoteDescription({ type: 'offer', sdp: offer });
  if (track) peer.addTrack(track);
  await peer.setLocalDescription(await peer.createAnswer());
  await new Promise<void>((resolve) => {
    if (peer.iceGatheringState === 'complete') resolve();
    peer.addEventListener('icegatheringstatechange', () => resolve());
    setTimeout(resolve, 1_000);
  });
  return peer.localDescription?.sdp ?? '';
}
