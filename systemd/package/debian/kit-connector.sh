#!/bin/sh
exec /usr/lib/kit-connector/bin/node --disable-sigusr1 --max-semi-space-size=1 \
  /usr/lib/kit-connector/app/kit-connector.mjs "$@"
