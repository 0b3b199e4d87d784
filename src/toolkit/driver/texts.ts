/** Sentences about devices that people read; tests refer to them by name. */
export const texts = {
  address_refused: 'device reported an address that is not used',
  on_gateway: 'it is this gateway; check the device for tampering',
  is_name:
    'its host name may lead anywhere; only an IP address or a name such as camera or camera.local is used',
  identity_claimed: 'device claimed the identity of another one; not serving it',
  same_device: (owner: string, asset_key: string) =>
    `it is the same device as "${owner}" (${asset_key}), or claims to be; remove one of the two from the configuration, or check this one for tampering`,
  other_device: (asset_key: string, bound_key: string) =>
    `another device answers at this address: ${asset_key} instead of ${bound_key}; if it was replaced, give its entry another name, else check which device answers`,
  plain_rtsp:
    'rtsp:// would send the password without TLS; enable RTSPS at the camera or set allow_plain_rtsp: true',
  shared_host:
    'another device is configured at the same host: set rtsp_port to the port at which the stream of this one is reached there',

  must_be_host:
    'must be a host name or an IP address, without a scheme, a port or a path; the port has its own key',

  // Why a reported address is refused
  not_a_url: 'it is not a URL',
  other_scheme: (scheme: string, own: string) => `its scheme is ${scheme}, not ${own}`,
  names_other_host: (reason: string) =>
    `${reason}, and it names another host; check the device for tampering`,
  too_long: (chars_max: number) => `it is longer than ${chars_max} characters`,
  forbidden_characters: 'it contains spaces, control characters or backslashes',
  has_fragment: 'it contains a fragment',
  no_host: 'it has no host',
} as const;
