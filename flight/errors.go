package flight

import (
	"log/slog"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/anisoflight/anisoflight/flight/api"
)

// grpcCodes maps the classes of the contract's errors to gRPC's codes.
var grpcCodes = map[api.Class]codes.Code{
	api.ClassInternal:           codes.Internal,
	api.ClassNotFound:           codes.NotFound,
	api.ClassInvalidArgument:    codes.InvalidArgument,
	api.ClassAlreadyExists:      codes.AlreadyExists,
	api.ClassFailedPrecondition: codes.FailedPrecondition,
	api.ClassResourceExhausted:  codes.ResourceExhausted,
	api.ClassUnavailable:        codes.Unavailable,
	api.ClassUnauthenticated:    codes.Unauthenticated,
	api.ClassPermissionDenied:   codes.PermissionDenied,
	api.ClassCancelled:          codes.Canceled,
	api.ClassDeadlineExceeded:   codes.DeadlineExceeded,
	api.ClassUnimplemented:      codes.Unimplemented,
	api.ClassDataLoss:           codes.DataLoss,
}

// toStatus makes the gRPC status of an error: its code and its text, "[CODE] sentence. hint". What the contract does
// not know becomes INTERNAL with the request's id and nothing else, and is logged in full.
func toStatus(log *slog.Logger, id string, err error) error {
	if err == nil {
		return nil
	}
	e := api.ErrorOf(err)
	code := grpcCodes[e.Code.Class()]
	if code == codes.Internal {
		log.Error("request failed", "error", err)
		return status.Errorf(codes.Internal, "[%s] request %s", api.Internal, id)
	}
	return status.Error(code, e.Error())
}
