package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/anisoflight/anisoflight/flight"
	"github.com/anisoflight/anisoflight/internal/engine"
)

var serveSpec = spec{
	use:   "serve",
	short: "Serve models, schedules and training over Arrow Flight",
	long: `Serve answers Arrow Flight requests on the folder given by --data until it is
interrupted. It logs "listening on ADDRESS" once it is ready. On SIGTERM or Ctrl-C it
takes no new requests, lets those in progress end within the grace period, and pauses
and stores the runs. A second Ctrl-C ends it at once.`,
	example: `  anisoflight serve --data data
  anisoflight serve --listen unix:anisoflight.sock
  ANISOFLIGHT_LISTEN=127.0.0.1:9000 anisoflight serve --log-format json`,
	options: []option{
		{name: "listen", def: "127.0.0.1:8815", usage: "`address`: HOST:PORT (port 0: any free one) or unix:PATH"},
		dataOption, deviceOption,
		{name: "max_bytes", kind: whole, usage: "`bytes` that one reply may have (default 1 GiB)"},
		{name: "max_upload_bytes", kind: whole, usage: "`bytes` that one upload may have (default 4 GiB)"},
		{name: "max_requests", kind: whole, usage: "`number` of operations under way at a time (default 256)"},
		{name: "seats", kind: whole, usage: "`number` of requests that may use the device at a time (default 2)"},
		{name: "grace", kind: number, def: "10", usage: "`seconds` that requests in progress get at the end"},
	},
	run: runServe,
}

func runServe(ctx context.Context, e env) error {
	return withEngine(ctx, e, func(eng *engine.Engine) error {
		listener, err := flight.Listen(ctx, e.text("listen"))
		if err != nil {
			return fmt.Errorf("cannot listen on %s: %w", e.text("listen"), err)
		}
		server := flight.New(eng, flight.Config{Logger: e.log})
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		e.log.Info("listening on "+address(listener.Addr()), "location", flight.Location(listener), "data", e.text("data"))
		select {
		case err := <-served:
			return err
		case <-ctx.Done():
		}
		grace := time.Duration(e.number("grace") * float64(time.Second))
		e.log.Info("shutting down", "grace", grace)
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if err := server.Shutdown(end); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return <-served
	})
}
