package checkpoint

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// DescribeModel reads the model folder dir but for the values of its weights, whose names and shapes it compares with
// the configuration. The hash is that of the folder's manifest, empty where it has none. What is missing or cannot be
// used is an *[Error]. [LoadModel] looks closer.
func DescribeModel(dir string) (*Model, error) { return readModel(dir, (*Model).describeWeights) }

func (m *Model) describeWeights(folder *atomicdir.Stored) error {
	if err := folder.CheckSize(weightsFile); err != nil {
		return inFile(weightsFile, withoutPath(err))
	}
	m.Hash = folder.Hash(weightsFile)
	f, err := safetensors.ReadHeader(folder.Path(weightsFile))
	if err != nil {
		err = cmp.Or(folder.Check(context.Background(), weightsFile), err)
		return inFile(weightsFile, withoutPath(err))
	}
	for _, p := range m.Net.Params() {
		t := f.Lookup(p.Name)
		switch {
		case t == nil && p.Optional:
		case t == nil:
			return &Error{File: weightsFile, Tensor: p.Name, Msg: "is missing"}
		case !slices.Equal(t.Shape, p.Shape):
			return &Error{File: weightsFile, Tensor: p.Name, Msg: "is of another shape than config.json asks for"}
		}
	}
	return nil
}

// WeightsFile returns the place of the weights of the model folder dir.
func WeightsFile(dir string) string { return filepath.Join(dir, weightsFile) }

// HashWeights returns the Hash of the model folder dir.
func HashWeights(dir string) (string, error) {
	file, err := os.Open(WeightsFile(dir))
	if err != nil {
		return "", inFile(weightsFile, withoutPath(err))
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", inFile(weightsFile, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
