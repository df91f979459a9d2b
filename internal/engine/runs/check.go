package runs

import "path/filepath"

// StatusPath returns the place of the status of the run whose folder is given.
func StatusPath(folder string) string { return filepath.Join(folder, "status.json") }

// StatePath returns the place of its last stored state.
func StatePath(folder string) string { return filepath.Join(folder, "state") }

// PreviousPath returns the place of the state before.
func PreviousPath(folder string) string { return filepath.Join(folder, "previous") }

// CheckStatus reads the status of a run, and returns what is wrong with it.
func CheckStatus(folder string) error {
	_, err := readStatus(StatusPath(folder))
	return err
}
