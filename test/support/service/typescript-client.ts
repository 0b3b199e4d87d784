/** Makes the types of a TypeScript client from an OpenAPI document, as an integrator would: with openapi-typescript. */
import { registerHooks } from 'node:module';
import type { JsonObject } from '../../../src/contract/json.ts';

/**
 * openapi-typescript writes its types with the compiler interface of TypeScript 5, which TypeScript 7 does not have any
 * more. It gets the compiler that @ts-morph/common contains.
 */
const compiler = `data:text/javascript,import{ts}from'${import.meta.resolve('@ts-morph/common')}';export default ts;`;

/** Returns the source of the types `paths` and `components`. */
export async function typesOf(document: JsonObject): Promise<string> {
  const hooks = registerHooks({
    resolve: (specifier, context, next) =>
      specifier === 'typescript' && context.parentURL?.includes('/openapi-typescript/')
        ? { url: compiler, shortCircuit: true }
        : next(specifier, context),
  });
  try {
    const { astToString, default: openapiTS } = await import('openapi-typescript');
    return astToString(await openapiTS(JSON.stringify(document)));
  } finally {
    hooks.deregister();
  }
}
