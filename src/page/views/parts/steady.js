/** Content that is drawn again only when what it shows has changed: most rows of a long list are as they were a moment ago. */
import { locale } from '../../world/units.js';
import { Component } from '../../preact.js';
import { html } from './html.js';

/** @import { ComponentChildren } from '../../preact.js' */

/** @typedef {{ readonly by: string, readonly draw: () => ComponentChildren }} Props */

/**
 * `by`: everything that the content depends on, as one text. It must have no handlers that depend on more.
 * @extends {Component<Props, {}>}
 */
class Steady extends Component {
  /**
   * @override
   * @param {Props} next
   */
  shouldComponentUpdate(next) {
    return next.by !== this.props.by;
  }

  /** @override */
  render() {
    return this.props.draw();
  }
}

/**
 * Draws again only when one of these values, or the language, has changed. Handlers in it may use the choices and the actions
 * of the page, which stay the same objects.
 * @param {readonly unknown[]} shown
 * @param {() => ComponentChildren} draw
 * @param {string} [key] among its neighbours
 */
export function steady(shown, draw, key) {
  return html`<${Steady} key=${key} by=${JSON.stringify([locale.now, ...shown])} draw=${draw} />`;
}
