/** Devices without ubus: what they show of themselves becomes the advice, and none of them sees a password. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { texts } from '../../../../drivers/vendorradio/texts.ts';
import { eventually } from '../../../support/eventually.ts';
import { vendorradioLab, type VendorradioLab } from '../../../support/drivers/vendorradio-lab.ts';
import { freePort } from '../../../support/ports.ts';

interface Page {
  readonly status?: number;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}
interface Device {
  /** By `METHOD path`. */
  readonly pages?: Readonly<Record<string, Page>>;
  readonly else?: Page;
}

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}

async function device({ pages = {}, else: other = { status: 404 } }: Device) {
  const bodies: string[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    bodies.push(await bodyOf(request));
    const page = pages[`${request.method} ${request.url}`] ?? other;
    response.writeHead(page.status ?? 200, page.headers).end(page.body);
  };
  const server = createServer((request, response) => void answer(request, response));
  const port = await freePort();
  await new Promise<void>((resolve) => {
    server.listen(port, '127.0.0.1', resolve);
  });
  stops.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => {
      server.close(resolve);
    });
  });
  return { port, bodies };
}

async function reasonOf(about: Device): Promise<{ readonly lab: VendorradioLab; readonly reason: string }> {
  const { port, bodies } = await device(about);
  const lab = await vendorradioLab();
  stops.push(lab.stop);
  lab.start(lab.options({ port }));
  await eventually('it was tried', () => lab.devices()[0]?.reason !== undefined);
  // The first request is the login itself; what follows it asks what the device is.
  expect(bodies.slice(1).some((body) => body.includes('secret'))).toBe(false);
  return { lab, reason: lab.devices()[0]?.reason ?? '' };
}

const json = { 'content-type': 'application/json' };
const html = (title: string): string => `<!DOCTYPE html><html><head><title>${title}</title></head></html>`;

describe('a device without ubus', () => {
  it.each<readonly [string, Device, string]>([
    [
      'is RutOS by the form of its errors (home-assistant/core#164811, assumed for this path)',
      {
        else: {
          status: 404,
          headers: json,
          body: '{"success":false,"errors":[{"code":122,"error":"Not found","source":"API"}]}',
        },
      },
      texts.other_rutos,
    ],
    [
      // karlbeecken/teltasync, tests: the status that needs no login.
      'is RutOS by its status without a login',
      {
        pages: {
          'GET /api/unauthorized/status': {
            headers: json,
            body: '{"success":true,"data":{"lang":"en","device_name":"RUTX50","device_model":"RUTX50","api_version":"1.9.2"}}',
          },
        },
      },
      texts.other_rutos,
    ],
    [
      // MIT-SPARK/Awesome-DCIST-T4, fleet_helpers.py.
      'is Silvus StreamScape by its JSON-RPC under cgi-bin',
      {
        pages: {
          'POST /cgi-bin/streamscape_api': {
            headers: json,
            body: '{"jsonrpc":"2.0","result":["123"],"id":1}',
          },
        },
      },
      texts.other_silvus('/cgi-bin/streamscape_api'),
    ],
    [
      // ArduPilot/MAVProxy, silvus module.
      'is Silvus StreamScape by its JSON-RPC at the other path, also where that asks for a login',
      {
        pages: {
          'POST /streamscape_api': { headers: json, body: '{"jsonrpc":"2.0","error":{"code":-1},"id":1}' },
        },
      },
      texts.other_silvus('/streamscape_api'),
    ],
    [
      // urbanadventurer/WhatWeb, plugins/airos.rb: cookie, and a redirect of every page.
      'is airOS by its cookie',
      {
        else: {
          status: 302,
          headers: {
            location: '/cookiechecker?uri=/',
            'set-cookie': 'AIROS_SESSIONID=0123456789abcdef0123456789abcdef; Path=/; Version=1',
          },
        },
      },
      texts.other_airos,
    ],
    [
      // intrigueio/intrigue-ident, checks/http/mikrotik.rb.
      'is RouterOS by its title',
      { pages: { 'GET /': { body: html('RouterOS router configuration page') } } },
      texts.other_routeros,
    ],
    [
      'runs OpenWrt by its start page, so that the package can be installed',
      {
        pages: {
          'GET /': { body: '<html><a href="cgi-bin/luci/">LuCI - Lua Configuration Interface</a></html>' },
        },
      },
      texts.other_luci,
    ],
    [
      'is another one, which is named by its own title',
      { pages: { 'GET /': { body: html(' Mimosa B5c ') } } },
      texts.other_page('Mimosa B5c'),
    ],
    [
      // Ubiquiti airOS 6 (CoMPaTech/python-airos, login of v6): its login page sets the cookie.
      'is airOS by the cookie of the page that it leads to',
      {
        pages: {
          'GET /': { status: 302, headers: { location: '/login.cgi' } },
          'GET /login.cgi': {
            body: html('Login'),
            headers: { 'set-cookie': 'AIROS_0418D6000001=1; Path=/' },
          },
        },
      },
      texts.other_airos,
    ],
    [
      'is another one, which is named by the title of the page that it leads to, at its own address',
      {
        pages: {
          'GET /': { status: 302, headers: { location: 'http://192.0.2.1/index.asp?a=1' } },
          'GET /index.asp?a=1': { body: html('cnPilot R201P') },
        },
      },
      texts.other_page('cnPilot R201P'),
    ],
    ['shows nothing', {}, texts.other_unknown],
    [
      'redirects everything',
      { else: { status: 302, headers: { location: 'https://x/' } } },
      texts.needs_https,
    ],
  ])('%s', async (_what, about, advice) => {
    const { reason } = await reasonOf(about);
    expect(reason).toContain(advice);
  });

  it('with one page for every path is named by it, and asked what it is once only', async () => {
    const { lab, reason } = await reasonOf({ else: { body: html('Acme Bridge') } });
    expect(reason).toContain(texts.answer_page);
    expect(reason).toContain(texts.other_page('Acme Bridge'));
    expect(lab.logged(/radio is unavailable/u)).toHaveLength(1);
  });

  it('is not said of a web server in trouble', async () => {
    const { reason } = await reasonOf({ else: { status: 502, body: html('502 Bad Gateway') } });
    expect(reason).toBe(texts.http_status(502));
  });
});
