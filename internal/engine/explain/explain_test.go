package explain

import (
	"errors"
	"fmt"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// A device that runs out of memory is the caller's to know; any other failure of a program is internal.
func TestOutOfMemoryIsTooLarge(t *testing.T) {
	for words, want := range map[string]api.Code{
		"running: PJRT error (code=8): Out of memory while trying to allocate 1073741824 bytes.": api.TooLarge,
		"while executing: RESOURCE_EXHAUSTED: no memory":                                         api.TooLarge,
		"PJRT error (code=13): something else":                                                   api.Internal,
	} {
		err := fmt.Errorf("step 3: %w", &device.ProgramError{Key: "step 8", Phase: "run", Err: errors.New(words)})
		if got := api.ErrorOf(Error(err)).Code; got != want {
			t.Errorf("%q becomes %s, want %s", words, got, want)
		}
	}
}
