/** Content that is drawn again only when what it shows has changed: most rows of a long list are as they were a moment ago. */
import { locale } from '../../units.ts';
import { Component, type ComponentChildren } from 'preact';
import { html } from './html.ts';

interface Props {
  readonly by: string;
  readonly draw: () => ComponentChildren;
}

/** `by`: everything that the content depends on, as one text. It must have no handlers that depend on more. */
class Steady extends Component<Props, {}> {
  override shouldComponentUpdate(next: Props) {
    return next.by !== this.props.by;
  }

  override render() {
    return this.props.draw();
  }
}

/**
 * Draws again only when one of these values, or the language, has changed. Handlers in it may use the choices and the actions
 * of the page, which stay the same objects.
 * @param key among its neighbours
 */
export function steady(shown: readonly unknown[], draw: () => ComponentChildren, key?: string) {
  return html`<${Steady} key=${key} by=${JSON.stringify([locale.now, ...shown])} draw=${draw} />`;
}
