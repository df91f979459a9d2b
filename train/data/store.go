package data

// Save writes the data set as the folder dir, which appears whole or not at all.
// An existing folder is an error that wraps fs.ErrExist unless replace is true.
func Save(dir string, d *Dataset, replace bool) error { return failf(-1, "not stored") }

// Load reads the folder dir.
func Load(dir string) (*Dataset, error) { return nil, failf(-1, "not stored") }
