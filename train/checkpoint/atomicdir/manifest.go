package atomicdir

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	// ManifestFile is the name of a folder's manifest.
	ManifestFile = "manifest.json"

	manifestFormat  = "anisoflight-manifest"
	manifestVersion = 1
)

// Manifest is the list of a folder's files without the manifest itself.
type Manifest map[string]Entry

// Entry describes a file in a manifest.
type Entry struct {
	Size   int64  `json:"size"`   // bytes
	SHA256 string `json:"sha256"` // in hex
}

// manifestText is a manifest as it is stored.
type manifestText struct {
	Format  string   `json:"format"`
	Version int      `json:"version"`
	Files   Manifest `json:"files"`
	SHA256  string   `json:"sha256"` // of Files in compact JSON: damage to the list is not blamed on a file
}

// Encode returns the manifest's one encoding.
func (m Manifest) Encode() ([]byte, error) {
	list, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(manifestText{manifestFormat, manifestVersion, m, hashOf(list)}, "", "  ")
	return append(text, '\n'), err
}

// DecodeManifest reads what Encode wrote, and nothing else. What it refuses is a [*DamageError].
func DecodeManifest(text []byte) (Manifest, error) {
	fail := func(format string, args ...any) (Manifest, error) {
		return nil, &DamageError{File: ManifestFile, Msg: fmt.Sprintf(format, args...)}
	}
	var t manifestText
	if err := json.Unmarshal(text, &t); err != nil || t.Format != manifestFormat || t.Files == nil {
		return fail("is not a manifest")
	}
	if t.Version != manifestVersion {
		return fail("has version %d; this program reads version %d", t.Version, manifestVersion)
	}
	for name, e := range t.Files {
		digest, err := hex.DecodeString(e.SHA256)
		if !isFileName(name) || e.Size < 0 || err != nil || len(digest) != sha256.Size {
			return fail("lists a file that cannot be")
		}
	}
	if own, err := t.Files.Encode(); err != nil || !bytes.Equal(own, text) {
		return fail("is not as it was written")
	}
	return t.Files, nil
}

// isFileName reports whether a file of a folder may be called that.
func isFileName(name string) bool {
	return fs.ValidPath(name) && name != "." && name != ManifestFile && !strings.ContainsAny(name, `/\`)
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// writeManifest is the last step of filling a folder.
func (f *Folder) writeManifest() error {
	if f.files == nil {
		return nil
	}
	for name, e := range f.files {
		if e == open {
			return fmt.Errorf("atomicdir: %s is still being written", name)
		}
	}
	text, err := f.files.Encode()
	if err != nil {
		return err
	}
	return writeNew(filepath.Join(f.dir(), ManifestFile), text)
}

// readManifest returns the manifest of dir, nil where it has none.
func readManifest(dir string) (Manifest, error) {
	text, err := os.ReadFile(filepath.Join(dir, ManifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return DecodeManifest(text)
}

// Seal writes a manifest of the present files into a folder that has none. The files must not change meanwhile.
func Seal(ctx context.Context, dir string) error {
	if m, err := readManifest(dir); m != nil || err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	m := Manifest{}
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(dir, e.Name())) // of the file that a link leads to
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			continue
		}
		hash, err := (&Stored{dir: dir}).Sum(ctx, e.Name())
		if err != nil {
			return err
		}
		m[e.Name()] = Entry{info.Size(), hash}
	}
	text, err := m.Encode()
	if err != nil {
		return err
	}
	return WriteFile(filepath.Join(dir, ManifestFile), text)
}
