/** Flags of Node.js for the tests, whose processes read TypeScript in many threads that come and go. */

/**
 * Node.js strips types with WebAssembly, in each thread by its own instance. The compiled entries from WebAssembly to JavaScript
 * are shared by all threads of a process; with this number of calls before one is compiled, none ever is. See decision 0036.
 */
export const source_flags = ['--wasm-wrapper-tiering-budget=2147483647'] as const;
