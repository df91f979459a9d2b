package client

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/anisoflight/anisoflight/flight/api"
)

// explain makes an error of gRPC an *api.Error, if it is one of the server's, or the context's own error.
func explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var s interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &s) {
		return err
	}
	if e, ok := api.ParseError(s.GRPCStatus().Message()); ok {
		return e
	}
	switch code := s.GRPCStatus().Code(); {
	case ctx.Err() != nil:
		return ctx.Err()
	case code == codes.Canceled:
		return context.Canceled
	case code == codes.ResourceExhausted: // gRPC's own refusal of a message
		return api.Errorf(api.TooLarge, "A message is too large: %w", err).WithHint("Send smaller batches.")
	case code == codes.DeadlineExceeded:
		return context.DeadlineExceeded
	}
	return fmt.Errorf("client: %w", err)
}
