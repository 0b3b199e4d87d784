#!/usr/bin/env -S node --max-semi-space-size=1 --wasm-wrapper-tiering-budget=2147483647
// A gateway has little memory; see src/platform/memory.ts for the rest. The other flag is for a run from the sources: decision 0036.
// The command `kit-connector`: an old Node can read this file and be told so; it cannot read TypeScript.
import './node-version.mjs';

await import('./main.ts');
