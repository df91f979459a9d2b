package atomicdir

import "os"

// system is what Write does to the file system, so that a crash at any of its steps is
// a test.
type system interface {
	MkdirTemp(parent, pattern string) (string, error)
	Mkdir(path string) error
	Sync(path string) error // flush one file or folder
	Rename(from, to string) error
	Exchange(a, b string) error
	RemoveAll(path string) error
}

// host is the machine's own.
type host struct{}

func (host) MkdirTemp(parent, pattern string) (string, error) { return os.MkdirTemp(parent, pattern) }
func (host) Mkdir(path string) error                          { return os.Mkdir(path, 0o755) }
func (host) Rename(from, to string) error                     { return os.Rename(from, to) }
func (host) Exchange(a, b string) error                       { return exchange(a, b) }
func (host) RemoveAll(path string) error                      { return os.RemoveAll(path) }

func (host) Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
