/** Writes elements as tagged templates. What stands in `${}` becomes text or an attribute, never markup. */
import htm from 'htm';
import { type ComponentChildren, h } from 'preact';

/**
 * The id of an element is its key among its neighbours: when a card appears above others, their buttons and the focus on
 * them stay. Elements without a key would be matched by their place, and replaced.
 */
function keyed(
  type: string,
  props: Readonly<Record<string, unknown>> | null,
  ...children: readonly ComponentChildren[]
) {
  return h(type, props?.['id'] ? { key: props['id'], ...props } : props, ...children);
}

export const html = htm.bind(keyed);
