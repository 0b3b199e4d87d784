/** The library as the service serves it beside the page's own modules. */
import type { VNode } from 'preact';

type Html = (strings: TemplateStringsArray, ...values: readonly unknown[]) => VNode;

declare const htm: { readonly bind: (create: (...element: never[]) => unknown) => Html };
export { htm as default };
