/** The types of the library: its own describe a CommonJS module, and hold `any`. */
import type { VNode } from 'preact';

type Html = (strings: TemplateStringsArray, ...values: readonly unknown[]) => VNode;

declare const htm: { readonly bind: (create: (...element: never[]) => unknown) => Html };
export { htm as default };
