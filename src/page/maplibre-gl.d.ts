/** The library as the service serves it beside the page's own modules. */
export {
  addProtocol,
  Map,
  setWorkerUrl,
  type FilterSpecification,
  type StyleSpecification,
} from 'maplibre-gl';
