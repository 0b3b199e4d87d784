/** Writes elements as tagged templates. What stands in `${}` becomes text or an attribute, never markup. */
import htm from '../../htm.js';
import { h } from '../../preact.js';

export const html = htm.bind(h);
