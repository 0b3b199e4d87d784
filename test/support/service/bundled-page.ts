/** The page as the package has it: of a few files, where a browser needs twice the processor time for the hundred of the sources. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { pageOnDemand, type PageSource } from '../../../src/cloud/http/page/page-files.ts';
import { madeOnce } from './made-once.ts';

const root = join(import.meta.dirname, '../../..');
let page: Promise<PageSource> | undefined;

/** The same for all tests of a file, because compressing it takes time. */
export async function bundledPage(): Promise<PageSource> {
  page ??= bundle();
  return page;
}

async function bundle(): Promise<PageSource> {
  const dir = await madeOnce('page', async (out) => {
    // Loaded only now: the bundler is large, and most files find its work done.
    const { bundlePage } = await import('../../../systemd/package/bundle.ts');
    await bundlePage(root, out);
  });
  return pageOnDemand(pathToFileURL(`${dir}/`));
}
