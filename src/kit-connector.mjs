#!/usr/bin/env -S node --max-semi-space-size=2 --heap-growing-percent=20
// A gateway has little memory: with these flags the heap grows by a fifth of what it does without while a backlog drains.
// The command `kit-connector`: an old Node can read this file and be told so; it cannot read TypeScript.
import './node-version.mjs';

await import('./main.ts');
