#!/usr/bin/env -S node --disable-warning=ExperimentalWarning
// Removing the types of the console's modules is experimental in Node.js: only a run from the sources does it.
// The command `kit-connector`: an old Node can read this file and be told so; it cannot read TypeScript.
import './node-version.mjs';

await import('./main.ts');
