package data

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"math"

	"github.com/anisoflight/anisoflight/internal/base/normalization"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// Writer stores images as they come and does not keep them: the data set may be larger than memory. It ends with Commit
// or Abort; Abort after Commit does nothing.
type Writer struct {
	form   Form
	empty  *Dataset // of the form, for its checks
	folder *atomicdir.Folder
	file   *atomicdir.File
	images *bufio.Writer
	labels []int32

	measured *normalization.Measure // nil if nothing is measured
	hash     hash.Hash
	head     int // bytes of the header: room for any number of images
	n        int // images so far
	total    int // images to come; 0 if not known
}

// Create begins to store a data set of n images as the folder dir. If n is not known it is 0, and Commit reads the
// images once more. A form that no images can have is an *[Error].
func Create(dir string, form Form, n int) (*Writer, error) {
	if form.Layout == "" {
		form.Layout = HWC
	}
	empty := &Dataset{images: Images{
		Height: form.Height, Width: form.Width, Channels: form.Channels, Layout: form.Layout,
		Unbounded: form.Unbounded || form.MeasureMean || form.MeasureScale,
	}}
	if !form.MeasureMean && !form.MeasureScale {
		empty.images.Normalization = form.Normalization
	}
	if err := empty.checkForm(); err != nil {
		return nil, err
	}
	if form.Normalization != nil && !form.Float || empty.images.Unbounded && !form.Float {
		return nil, failf(-1, "mean and scale are those of float32; bytes are images in [−1, 1]")
	}
	folder, err := atomicdir.Begin(dir)
	if err != nil {
		return nil, err
	}
	f, err := folder.Create(imagesFile)
	if err != nil {
		return nil, errors.Join(err, folder.Abort())
	}
	w := &Writer{
		form: form, empty: empty, folder: folder, file: f, images: bufio.NewWriterSize(f, 1<<20),
		hash: newHash(form), total: n,
	}
	if form.MeasureMean || form.MeasureScale {
		w.measured = normalization.NewMeasure(form.Channels)
	}
	w.head = len(w.header(math.MaxInt))
	_, _ = w.images.Write(w.header(n)) // an error stays until Commit
	return w, nil
}

func (w *Writer) header(n int) []byte {
	descr := "|u1"
	if w.form.Float {
		descr = "<f4"
	}
	return npyHeader(descr, append([]int{n}, w.empty.Shape()...), w.head)
}

// Len returns the number of images so far.
func (w *Writer) Len() int { return w.n }

// Uint8 adds images of bytes, in the form's layout, with a label each if the form has labels. An image or label that a
// data set cannot hold is an *[Error] with its row.
func (w *Writer) Uint8(images []uint8, labels []int32) error {
	if w.form.Float {
		return failf(w.n, "images must be floats, as those before, got bytes")
	}
	if err := w.count(len(images), labels); err != nil {
		return err
	}
	_, err := w.sinks().Write(images)
	return err
}

// Float32 is Uint8 for floats.
func (w *Writer) Float32(images []float32, labels []int32) error {
	if !w.form.Float {
		return failf(w.n, "images must be bytes, as those before, got floats")
	}
	size := w.empty.Pixels()
	for i := range len(images) / size {
		if err := w.empty.CheckRow(w.n+i, images[i*size:(i+1)*size]); err != nil {
			return err
		}
	}
	if err := w.count(len(images), labels); err != nil {
		return err
	}
	if w.measured != nil {
		for i, v := range images {
			w.measured.Add(v, w.empty.channel(i%size))
		}
	}
	return writeValues(w.sinks(), images)
}

// normalization returns the normalization, declared or measured.
func (w *Writer) normalization() (*normalization.Affine, error) {
	if w.measured == nil {
		return w.form.Normalization, nil
	}
	var mean, scale []float64
	if n := w.form.Normalization; n != nil {
		mean, scale = n.Mean, n.Scale
	}
	if w.form.MeasureMean {
		mean, _ = w.measured.Moments()
	}
	var err error
	if w.form.MeasureScale {
		if scale, err = w.measured.Scales(); err != nil {
			return nil, failf(-1, "%v", err)
		}
	}
	n, err := normalization.New(mean, scale, w.form.Channels)
	if err != nil {
		return nil, failf(-1, "%v", err)
	}
	for c := range w.form.Channels {
		for _, v := range []float32{w.measured.Low[c], w.measured.High[c]} {
			if !n.IsFinite(v, c) {
				return nil, failf(-1, "values must stay finite as (x − mean)/scale, got %v in channel %d", v, c)
			}
		}
	}
	return n, nil
}

func (w *Writer) sinks() io.Writer { return io.MultiWriter(w.images, w.hash) }

// count counts the images of a number of values, and keeps their labels.
func (w *Writer) count(values int, labels []int32) error {
	n := values / w.empty.Pixels()
	switch {
	case n*w.empty.Pixels() != values:
		return failf(-1, "values must make whole images of %d, got %d", w.empty.Pixels(), values)
	case w.form.Labels && len(labels) != n, !w.form.Labels && labels != nil:
		return failf(-1, "labels must be as many as images, %d, got %d", n, len(labels))
	}
	if err := checkLabels(w.n, labels); err != nil {
		return err
	}
	w.labels = append(w.labels, labels...)
	w.n += n
	return nil
}

// Commit stores the data set, which appears whole or not at all. Unless replace is true, an existing folder is an error
// that wraps fs.ErrExist. A number of images other than that of Create is an *[Error].
func (w *Writer) Commit(replace bool) error {
	defer w.Abort()
	if w.n == 0 {
		return failf(-1, "there must be at least one image")
	}
	if w.total > 0 && w.n != w.total {
		return failf(-1, "there must be %d images, got %d", w.total, w.n)
	}
	affine, err := w.normalization()
	if err != nil {
		return err
	}
	if err := w.images.Flush(); err != nil {
		return err
	}
	if w.total == 0 {
		if _, err := w.file.WriteAt(w.header(w.n), 0); err != nil {
			return err
		}
	}
	if err := w.file.Close(); err != nil {
		return err
	}
	if w.form.Labels {
		if err := w.writeLabels(); err != nil {
			return err
		}
	}
	_ = writeNormalization(w.hash, affine) // a hash never fails
	head, err := json.Marshal(storeHead{
		storeFormat, storeVersion, w.form.Layout, w.form.Unbounded,
		hex.EncodeToString(w.hash.Sum(nil)), affine,
	})
	if err != nil {
		return err
	}
	if err := w.folder.WriteFile(headFile, append(head, '\n')); err != nil {
		return err
	}
	folder := w.folder
	w.folder = nil
	return folder.Commit(replace)
}

func (w *Writer) writeLabels() error {
	_ = writeValues(w.hash, w.labels) // a hash never fails
	f, err := w.folder.Create(labelsFile)
	if err != nil {
		return err
	}
	return errors.Join(WriteNPY(f, &Array{Shape: []int{w.n}, Values: w.labels}), f.Close())
}

// Abort removes what has been written.
func (w *Writer) Abort() {
	if w.folder == nil {
		return
	}
	_ = w.file.Close()
	_ = w.folder.Abort() // what stays is hidden, and swept at the next start
	w.folder = nil
}
