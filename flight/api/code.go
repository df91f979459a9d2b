package api

// Code is the stable name of an error. It stands in brackets at the head of every error message on the wire, so that a
// client can tell apart errors that its gRPC library maps to one class.
type Code string

// The codes of the contract, by class.
const (
	ModelNotFound    Code = "MODEL_NOT_FOUND"
	ScheduleNotFound Code = "SCHEDULE_NOT_FOUND"
	BasisNotFound    Code = "BASIS_NOT_FOUND"
	DatasetNotFound  Code = "DATASET_NOT_FOUND"
	RunNotFound      Code = "RUN_NOT_FOUND"
	OpNotFound       Code = "OP_NOT_FOUND"

	BadRequest  Code = "BAD_REQUEST"
	BadTensor   Code = "BAD_TENSOR"
	BadSchedule Code = "BAD_SCHEDULE"
	BadModel    Code = "BAD_MODEL"

	NameTaken Code = "NAME_TAKEN"

	RunNotRunnable Code = "RUN_NOT_RUNNABLE"

	TooLarge Code = "TOO_LARGE"
	Busy     Code = "BUSY"

	Draining Code = "DRAINING"

	NoToken Code = "NO_TOKEN"

	ScopeMissing Code = "SCOPE"

	Cancelled Code = "CANCELLED"

	Internal Code = "INTERNAL"
)

// Class is the kind of an error as transports know it: the service maps each class to the gRPC status code of the same
// name.
type Class uint8

// The classes, named after the gRPC status codes they become.
const (
	ClassInternal Class = iota
	ClassNotFound
	ClassInvalidArgument
	ClassAlreadyExists
	ClassFailedPrecondition
	ClassResourceExhausted
	ClassUnavailable
	ClassUnauthenticated
	ClassPermissionDenied
	ClassCancelled
)

var classes = map[Code]Class{
	ModelNotFound:    ClassNotFound,
	ScheduleNotFound: ClassNotFound,
	BasisNotFound:    ClassNotFound,
	DatasetNotFound:  ClassNotFound,
	RunNotFound:      ClassNotFound,
	OpNotFound:       ClassNotFound,
	BadRequest:       ClassInvalidArgument,
	BadTensor:        ClassInvalidArgument,
	BadSchedule:      ClassInvalidArgument,
	BadModel:         ClassInvalidArgument,
	NameTaken:        ClassAlreadyExists,
	RunNotRunnable:   ClassFailedPrecondition,
	TooLarge:         ClassResourceExhausted,
	Busy:             ClassResourceExhausted,
	Draining:         ClassUnavailable,
	NoToken:          ClassUnauthenticated,
	ScopeMissing:     ClassPermissionDenied,
	Cancelled:        ClassCancelled,
	Internal:         ClassInternal,
}

// Class returns the class of c; a code that the contract does not know is ClassInternal.
func (c Code) Class() Class { return classes[c] }
