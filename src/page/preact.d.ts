/** The library as the service serves it beside the page's own modules. */
export { Component, h, render, type ComponentChildren, type VNode } from 'preact';
