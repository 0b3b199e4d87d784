/** Says at the end of a run which tests left themselves out, and why: the reporters only count them. */
import type { TestProject } from 'vitest/node';

/** For `globalSetup` of vitest. Groups that lack a program have said so when they were read. */
export function setup({ vitest }: TestProject): () => void {
  return () => {
    for (const module of vitest.state.getTestModules()) {
      for (const test of module.children.allTests('skipped')) {
        const { note } = test.result() as { readonly note?: string };
        if (note !== undefined)
          console.warn(`skipped: ${module.relativeModuleId}: ${test.fullName}: ${note}`);
      }
    }
  };
}
