#!/usr/bin/env node
// The command `kit-connector`: an old Node can read this file and be told so; it cannot read TypeScript.
import './node-version.mjs';

await import('./main.ts');
