/** Flags of Node.js for processes that read TypeScript in several threads. */

/**
 * Node.js strips types with WebAssembly, in each thread by its own instance. The compiled entries from WebAssembly to JavaScript
 * are shared by all threads of a process; with this number of calls before one is compiled, none ever is. See decision 0036.
 */
export const source_flags = ['--wasm-wrapper-tiering-budget=2147483647'] as const;
