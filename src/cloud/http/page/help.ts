/** Serves the pages of `src/help` to browsers under `/help/`: they are needed where there is no network. Made of their Markdown at the first request. */
import { readdir, readFile } from 'node:fs/promises';
import { posix } from 'node:path';
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Env } from '../context.ts';
import { answerFile, fileOf, type PageFile } from './page-files.ts';

const help_dir = new URL('../../../help/', import.meta.url);
/** Where the repository has the pages, from which their links to others begin. */
const help_path = 'src/help';
/** Where the packages have the rest of the pages. */
const doc_dir = '/usr/share/doc/kit-connector-runtime';
const first_page = 'README.md';
const styles = `:root { color-scheme: light dark; }
body { font: 17px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; }
th, td { border: 1px solid #8888; padding: 0.3rem 0.6rem; text-align: left; vertical-align: top; }
pre { overflow-x: auto; padding: 0.6rem; background: #8882; }
pre code { white-space: pre; overflow-wrap: normal; }
img { max-width: 100%; height: auto; }
`;

/** Without a key: the pages are the same for everybody. */
export function serveHelp(app: OpenAPIHono<Env>): void {
  let files: Promise<ReadonlyMap<string, PageFile>> | undefined;
  for (const path of ['/help', '/help/:name']) {
    app.get(path, async (c) => {
      files ??= loadHelp();
      const file = (await files).get(c.req.param('name') ?? '');
      return file ? answerFile(c, file, 'no-cache') : c.notFound();
    });
  }
}

async function loadHelp(): Promise<ReadonlyMap<string, PageFile>> {
  const files = new Map([['help.css', await fileOf('text/css; charset=utf-8', styles)]]);
  for (const name of await readdir(help_dir)) {
    const content = await readFile(new URL(name, help_dir));
    if (name.endsWith('.png')) files.set(name, await fileOf('image/png', content));
    if (!name.endsWith('.md')) continue;
    const page = await fileOf('text/html; charset=utf-8', await htmlOf(content.toString()));
    files.set(name === first_page ? '' : name, page);
  }
  return files;
}

/** The page as HTML; the library is loaded only here. */
async function htmlOf(markdown: string): Promise<string> {
  const { Marked } = await import('marked');
  const marked = new Marked({ gfm: true });
  const title = /^# (.+)$/mu.exec(markdown)?.[1] ?? 'Help';
  marked.use({
    renderer: {
      heading({ tokens, depth, text }) {
        const id = text
          .toLowerCase()
          .replaceAll(/[^\w -]/gu, '')
          .replaceAll(' ', '-');
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens);
        const to = linkTo(href);
        return to === undefined
          ? `${text} (<code>${escaped(`${doc_dir}/${pathOf(href)}`)}</code>)`
          : `<a href="${escaped(to)}">${text}</a>`;
      },
    },
  });
  const body = await marked.parse(markdown);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8" />
<meta name="viewport" content="width=device-width" />
<title>${escaped(title)}</title>
<link rel="stylesheet" href="/help/help.css" />
</head>
<body>
<p><a href="/">Console</a> · <a href="/help/">Help</a></p>
${body}
</body>
</html>
`;
}

/** Within the pages; undefined: a file of the repository, which is not served. */
function linkTo(href: string): string | undefined {
  if (/^(?:https?:|#)/u.test(href)) return href;
  const [path = '', anchor] = pathOf(href).split('#');
  if (posix.dirname(path) !== help_path) return undefined;
  const name = posix.basename(path) === first_page ? '' : posix.basename(path);
  return `/help/${name}${anchor === undefined ? '' : `#${anchor}`}`;
}

function pathOf(href: string): string {
  return posix.join(help_path, href);
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"]/gu, (char) => `&#${char.charCodeAt(0)};`);
}
