/** Recognises a device that has another interface than ubus, so that the advice names what can be done. No request holds a login. */
import type { HttpReply, PinnedHttp } from '../../../src/toolkit/device/pinned-http.ts';
import { texts } from '../texts.ts';

type Http = Pick<PinnedHttp, 'get' | 'post'>;

interface Sign {
  readonly path: string;
  /** Posted; left out, it is a GET. */
  readonly body?: string;
  /** What the answer shows, where it is of such a device. */
  readonly shows: (reply: HttpReply) => string | undefined;
}

const json_rpc = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'nodeid', params: [] });
const title = /<title[^>]*>\s*([^<]{1,80}?)\s*</iu;
/** The head of a page is shorter. */
const page_chars_max = 4_096;

/** Where a device shows what it is, the most telling first. Sources of each are beside its test. */
const signs: readonly Sign[] = [
  {
    path: '/api/unauthorized/status',
    shows: ({ text }) => (isRutos(text) ? texts.other_rutos : undefined),
  },
  ...['/streamscape_api', '/cgi-bin/streamscape_api'].map((path) => ({
    path,
    body: json_rpc,
    shows: ({ status, text }: HttpReply) =>
      status === 200 && text.includes('"jsonrpc"') ? texts.other_silvus(path) : undefined,
  })),
  {
    path: '/',
    shows({ status, text, cookies }) {
      if (cookies.some((cookie) => cookie.startsWith('AIROS_'))) return texts.other_airos;
      const page = status === 200 ? text.slice(0, page_chars_max) : '';
      if (page.includes('LuCI - Lua Configuration Interface')) return texts.other_luci;
      const name = title.exec(page)?.[1];
      if (name === undefined) return undefined;
      return /^routeros/iu.test(name) ? texts.other_routeros : texts.other_page(name);
    },
  },
];

/** The form of every answer of its interface. */
function isRutos(text: string): boolean {
  return /"success"\s*:\s*(?:true|false)/u.test(text) && /"device_?model"|"source"\s*:/iu.test(text);
}

/** `refusal`: the answer at the path of ubus. Undefined: the device does not show what it is. */
export async function otherInterface(
  http: Http,
  refusal: HttpReply,
  deadline_ms: number,
): Promise<string | undefined> {
  if (isRutos(refusal.text)) return texts.other_rutos;
  const get = async (path: string) => http.get(path, { deadline_ms }).catch(() => undefined);
  for (const { path, body, shows } of signs) {
    const reply =
      body === undefined
        ? await get(path)
        : await http.post(path, body, { deadline_ms }).catch(() => undefined);
    const shown = reply && shows(reply);
    if (shown !== undefined) return shown;
    // Many start pages lead to that of the login.
    const next = path === '/' ? pathIn(reply?.location) : undefined;
    const second = next === undefined ? undefined : await get(next);
    const shown_there = second && shows(second);
    if (shown_there !== undefined) return shown_there;
  }
  return undefined;
}

/** Of an address on the device itself, whatever host it names. */
function pathIn(location: string | undefined): string | undefined {
  const url = location === undefined ? null : URL.parse(location, 'http://device/');
  const path = url ? `${url.pathname}${url.search}` : '/';
  return path === '/' ? undefined : path;
}
