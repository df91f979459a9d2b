package atomicdir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
)

// File is a file of a folder that is being filled. It is hashed while it is written.
type File struct {
	folder *Folder
	name   string
	file   *os.File
	sum    hash.Hash
	size   int64 // written in order
	mended bool  // hashed bytes have been overwritten: sum is not that of the file
	err    error // the first
}

// open is the entry of a file that has not been closed.
var open = Entry{Size: -1}

// Create begins a file of the folder; its name must be new and without separators. Close it before Commit.
func (f *Folder) Create(name string) (*File, error) {
	if _, taken := f.files[name]; taken || !isFileName(name) {
		return nil, fmt.Errorf("atomicdir: name of a file must be new and without separators, got %q", name)
	}
	file, err := create(filepath.Join(f.dir(), name))
	if err != nil {
		return nil, err
	}
	f.files[name] = open
	return &File{folder: f, name: name, file: file, sum: sha256.New()}, nil
}

// Hash returns the SHA-256 of a closed file, in hex.
func (f *File) Hash() string { return f.folder.files[f.name].SHA256 }

// WriteFile writes a whole file of the folder.
func (f *Folder) WriteFile(name string, data []byte) error {
	file, err := f.Create(name)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// Write implements io.Writer. A large piece is hashed and written at the same time.
func (f *File) Write(b []byte) (n int, err error) {
	const large = 1 << 16
	if err := about("write", f.file.Name()); err != nil {
		return 0, f.note(err)
	}
	if len(b) < large {
		f.sum.Write(b)
		n, err = f.file.Write(b)
	} else {
		hashed := make(chan struct{})
		go func() {
			defer close(hashed)
			f.sum.Write(b)
		}()
		n, err = f.file.Write(b)
		<-hashed
	}
	f.size += int64(n)
	return n, f.note(err)
}

// WriteAt overwrites bytes that have been written, such as a header. Close then reads the file to hash it.
func (f *File) WriteAt(b []byte, offset int64) (n int, err error) {
	if offset < 0 || offset+int64(len(b)) > f.size {
		return 0, f.note(fmt.Errorf("atomicdir: %s has no bytes %d to %d yet", f.name, offset, offset+int64(len(b))))
	}
	if err := about("write", f.file.Name()); err != nil {
		return 0, f.note(err)
	}
	f.mended = true
	n, err = f.file.WriteAt(b, offset)
	return n, f.note(err)
}

func (f *File) note(err error) error {
	if f.err == nil {
		f.err = err
	}
	return err
}

// Close closes the file and adds it to the manifest. It also returns the first error of writing.
func (f *File) Close() error {
	if f.mended && f.err == nil {
		f.sum.Reset()
		_, err := io.Copy(f.sum, io.NewSectionReader(f.file, 0, f.size))
		_ = f.note(err)
	}
	_ = f.note(f.file.Close())
	if f.err == nil {
		f.folder.files[f.name] = Entry{f.size, hex.EncodeToString(f.sum.Sum(nil))}
	}
	return f.err
}
