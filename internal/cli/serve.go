package cli

import (
	"context"
)

var serveSpec = spec{
	use:   "serve",
	short: "Serve models, schedules and training over Arrow Flight",
	long: `Serve answers Arrow Flight requests on the folder given by --data until it is
interrupted. It logs "listening on ADDRESS" once it is ready. On SIGTERM or Ctrl-C it
takes no new requests, lets those in progress end, and pauses and stores the runs.`,
	example: `  anisoflight serve --data data
  anisoflight serve --listen unix:anisoflight.sock
  ANISOFLIGHT_LISTEN=0.0.0.0:8815 anisoflight serve --log-format json`,
	options: []option{
		{name: "listen", def: "127.0.0.1:8815", usage: "`address`: HOST:PORT or unix:PATH"},
		dataOption, deviceOption,
	},
	run: serve,
}

func serve(ctx context.Context, e env) error {
	return nil
}
