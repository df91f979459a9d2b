package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// RunHead is the content of run.json: all of a run except tensors.
type RunHead struct {
	Config       json.RawMessage `json:"config"`                  // the training configuration
	Step         int64           `json:"step"`                    // steps taken
	Seen         int64           `json:"seen"`                    // images trained on
	Position     int64           `json:"position"`                // in the order of the data set
	Skipped      int64           `json:"skipped"`                 // steps that changed nothing: a gradient was not finite
	Images       int64           `json:"images"`                  // of the data set
	DatasetHash  string          `json:"dataset_hash"`            // SHA-256 of its images and labels
	Updates      int64           `json:"updates"`                 // of the network's optimiser
	ThetaUpdates []int64         `json:"theta_updates,omitempty"` // per row of the schedule
	Looks        json.RawMessage `json:"looks,omitempty"`         // measurements of states of the run
	Best         int             `json:"best,omitempty"`          // index of the look whose state is kept
}

// Run is the whole state of a training run between two steps.
type Run struct {
	RunHead

	Network           kernels.Architecture // nil for a network without parameters
	Params, M, V, EMA [][]float32          // of the network; M, V and EMA nil if it is frozen

	Schedule       *schedule.Schedule // nil if there is none
	Basis          *basis.Basis       // dense basis of Schedule; nil for a basis by formula
	Family         *basis.Basis       // dense basis of the configuration's family, if it is not that of Schedule
	ThetaM, ThetaV [][][]float64      // Adam's moments [row][subspace][K−1]; nil if the schedule is not trained
	ThetaGradient  [][][]float64      // of the last step that moved θ; nil before one has
	ThetaStart     [][][]float64      // θ when the run began; nil if the schedule is not trained

	BestEMA   [][]float32   // of the kept state; nil if there is none, or the network is frozen
	ThetaBest [][][]float64 // θ of the kept state; nil if there is none, or the schedule is not trained

	Rows [][]float64 // metric rows so far, one value per column
}

// runFileHead is run.json.
type runFileHead struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	RunHead
}

// SaveRun writes r as the folder dir. An existing folder moves to previous and replaces the one there. A folder appears
// whole or not at all.
func SaveRun(dir, previous string, r *Run) error {
	files := map[string][]byte{}
	head, err := json.MarshalIndent(runFileHead{runFormat, runVersion, r.RunHead}, "", "  ")
	if err != nil {
		return inFile(runFile, err)
	}
	files[runFile] = append(head, '\n')
	f := &safetensors.File{}
	if r.Network != nil {
		if files[networkFile], err = json.MarshalIndent(r.Network, "", "  "); err != nil {
			return inFile(networkFile, err)
		}
		for _, g := range r.groups() {
			if err := g.encode(r.Network, f); err != nil {
				return err
			}
		}
	}
	for _, t := range r.tables() {
		if *t.values != nil {
			f.Tensors = append(f.Tensors, tableTensor(t.name, *t.values))
		}
	}
	if len(r.Rows) > 0 {
		shape := []int{len(r.Rows), len(r.Rows[0])}
		f.Tensors = append(f.Tensors, safetensors.FromFloat64s("rows", shape, slices.Concat(r.Rows...)))
	}
	if err := addSchedule(files, r.Schedule, r.Basis); err != nil {
		return err
	}
	if r.Family != nil {
		if files[familyFile], err = EncodeBasis(r.Family); err != nil {
			return inFile(familyFile, err)
		}
	}
	return atomicdir.WriteKeeping(dir, previous, func(folder *atomicdir.Folder) error {
		if _, err := writeTensors(folder, stateFile, f); err != nil {
			return err
		}
		return fill(folder, files)
	})
}

// LoadRun reads the run folder dir. A file that is missing or cannot be used is an *[Error].
func LoadRun(dir string) (*Run, error) {
	return readFolder(dir, func(folder *atomicdir.Stored) (*Run, error) {
		r := &Run{}
		return r, readParts(folder, []part{
			{runFile, false, r.decodeHead},
			{networkFile, true, r.decodeNetwork},
			{stateFile, false, r.decodeState},
			schedulePart(&r.Schedule, true),
			basisPart(BasisFile, &r.Basis, true),
			basisPart(familyFile, &r.Family, true),
		})
	})
}

// DescribeRun returns the configuration and the counters of the run folder dir. It checks the names and shapes of
// tensors and does not read their values. Errors are those of [LoadRun].
func DescribeRun(dir string) (*Run, error) {
	return readFolder(dir, func(folder *atomicdir.Stored) (*Run, error) {
		r := &Run{}
		if err := (part{runFile, false, r.decodeHead}).read(folder); err != nil {
			return nil, err
		}
		err := folder.CheckSize(stateFile)
		if err == nil {
			_, err = safetensors.ReadHeader(folder.Path(stateFile))
		}
		return r, inFile(stateFile, err)
	})
}

func (r *Run) decodeHead(b []byte) error {
	var h runFileHead
	if err := json.Unmarshal(b, &h); err != nil || h.Format != runFormat {
		return errors.New("is not a run's")
	}
	if h.Version != runVersion {
		return fmt.Errorf("has version %d; this program reads version %d", h.Version, runVersion)
	}
	r.RunHead = h.RunHead
	return nil
}

func (r *Run) decodeNetwork(b []byte) (err error) {
	r.Network, err = ParseNetwork(b)
	return err
}

func (r *Run) decodeState(b []byte) error {
	f, err := safetensors.Decode(b)
	if err != nil {
		return err
	}
	if r.Network != nil {
		for _, g := range r.groups() {
			if err := g.decode(r.Network, f); err != nil {
				return err
			}
		}
	}
	for _, t := range r.tables() {
		if *t.values, err = tableOf(f, t.name); err != nil {
			return err
		}
	}
	if t := f.Lookup("rows"); t != nil {
		values, err := t.Float64s()
		if err != nil || len(t.Shape) != 2 || t.Shape[1] < 1 {
			return tensorf("rows", "is of type %s and shape %v; it is [steps, columns] of F64", t.DType, t.Shape)
		}
		r.Rows = slices.Collect(slices.Chunk(values, t.Shape[1]))
	}
	return nil
}

func (r *Run) groups() []group {
	return []group{
		{"params", &r.Params, false}, {"m", &r.M, true}, {"v", &r.V, true}, {"ema", &r.EMA, true}, {"best", &r.BestEMA, true},
	}
}

func (r *Run) tables() []table {
	return []table{
		{"theta_m", &r.ThetaM},
		{"theta_v", &r.ThetaV},
		{"theta_gradient", &r.ThetaGradient},
		{"theta_start", &r.ThetaStart},
		{"theta_best", &r.ThetaBest},
	}
}

// group is one set of values of all parameters, stored under prefix/NAME.
type group struct {
	prefix   string
	values   *[][]float32
	optional bool
}

func (g group) encode(net kernels.Architecture, f *safetensors.File) error {
	if *g.values == nil && g.optional {
		return nil
	}
	params := net.Params()
	if len(*g.values) != len(params) {
		return tensorf(g.prefix, "has %d tensors, the network %d parameters", len(*g.values), len(params))
	}
	for i, p := range params {
		if len((*g.values)[i]) != p.Size() {
			return tensorf(g.prefix+"/"+p.Name, "has %d values, want %d", len((*g.values)[i]), p.Size())
		}
		f.Tensors = append(f.Tensors, safetensors.FromFloat32s(g.prefix+"/"+p.Name, p.Shape, (*g.values)[i]))
	}
	return nil
}

func (g group) decode(net kernels.Architecture, f *safetensors.File) error {
	params := net.Params()
	if len(params) > 0 && g.optional && f.Lookup(g.prefix+"/"+params[0].Name) == nil {
		return nil
	}
	for _, p := range params {
		name := g.prefix + "/" + p.Name
		t := f.Lookup(name)
		switch {
		case t == nil:
			return tensorf(name, "is missing")
		case t.DType != safetensors.F32:
			return tensorf(name, "is of type %s; want F32", t.DType)
		case !slices.Equal(t.Shape, p.Shape):
			return tensorf(name, "has shape %v; network.json asks for %v", t.Shape, p.Shape)
		}
		values, err := t.Float32s()
		if err != nil {
			return err
		}
		*g.values = append(*g.values, values)
	}
	return nil
}

// table is a tensor of the size of the schedule's parameters.
type table struct {
	name   string
	values *[][][]float64
}

// tableTensor returns the tensor of a table [row][subspace][K−1].
func tableTensor(name string, table [][][]float64) safetensors.Tensor {
	var flat []float64
	for _, row := range table {
		flat = append(flat, slices.Concat(row...)...)
	}
	return safetensors.FromFloat64s(name, []int{len(table), len(table[0]), len(table[0][0])}, flat)
}

// tableOf is the inverse of tableTensor; nil if the tensor does not exist.
func tableOf(f *safetensors.File, name string) ([][][]float64, error) {
	t := f.Lookup(name)
	if t == nil {
		return nil, nil
	}
	if t.DType != safetensors.F64 || len(t.Shape) != 3 || slices.Min(t.Shape) < 1 {
		return nil, tensorf(name, "is of type %s and shape %v; it is [rows, subspaces, parameters] of F64", t.DType, t.Shape)
	}
	flat, err := t.Float64s()
	if err != nil {
		return nil, err
	}
	var table [][][]float64
	for row := range slices.Chunk(flat, t.Shape[1]*t.Shape[2]) {
		table = append(table, slices.Collect(slices.Chunk(row, t.Shape[2])))
	}
	return table, nil
}
