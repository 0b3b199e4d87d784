/** The library as the service serves it beside the page's own modules. */
export { PMTiles, Protocol } from 'pmtiles';
