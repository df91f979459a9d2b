package api

import (
	"context"

	"github.com/anisoflight/anisoflight/base/suggest"
)

// Operation describes what a server can do under one name: by which ways it is reached, which scope it needs and what
// its requests are.
type Operation struct {
	Name     string
	Ways     Way
	Scope    Scope
	New      func() Request // an empty request of the operation's own type
	Rows     bool           // it moves tensors and tables; its results as an action are IPC streams, else JSON
	Reads    bool           // it changes nothing that is stored
	Watches  bool           // it waits for what others do, and is not counted among the requests at work
	Sentence string
}

// By reports whether the operation is reached by a way.
func (o *Operation) By(w Way) bool { return o.Ways&w != 0 }

// Call decodes a request of the operation.
func (o *Operation) Call(m Message) (Call, error) {
	req := o.New()
	err := m.Decode(req)
	return Call{Op: o, Request: req}, err
}

// Way is a set of Flight's calls by which an operation is reached.
type Way uint8

// The ways. Tickets, and commands of GetFlightInfo, DoExchange and DoPut, name the operation as "op".
const (
	ByAction   Way = 1 << iota // DoAction
	ByGet                      // DoGet, GetFlightInfo and GetSchema
	ByExchange                 // DoExchange
	ByPut                      // DoPut
)

var wayNames = map[Way]string{
	ByAction: "action", ByGet: "operation that gives rows", ByExchange: "exchange",
	ByPut: "upload",
}

// String says what an operation is that is reached by a way.
func (w Way) String() string { return wayNames[w] }

// Scope is a class of operations that a token may be good for. Scopes do not contain each other.
type Scope string

// The scopes.
const (
	ReadScope   Scope = "read"   // look at what is stored
	SampleScope Scope = "sample" // evaluate networks
	TrainScope  Scope = "train"  // make and change runs, data sets, schedules, bases and models
	AdminScope  Scope = "admin"  // load, unload and delete
)

// Scopes lists the scopes.
var Scopes = []Scope{ReadScope, SampleScope, TrainScope, AdminScope}

// Table lists the operations of a server.
type Table []*Operation

// Named returns an operation, nil where there is none of that name.
func (t Table) Named(name string) *Operation {
	for _, op := range t {
		if op.Name == name {
			return op
		}
	}
	return nil
}

// Find returns the operation that a way reaches under a name.
func (t Table) Find(w Way, name string) (*Operation, error) {
	var names []string
	for _, op := range t {
		switch {
		case !op.By(w):
		case op.Name == name:
			return op, nil
		default:
			names = append(names, op.Name)
		}
	}
	hint := "docs/wire.md lists them, and ListActions the actions."
	if ask := suggest.DidYouMean(name, names); ask != "" {
		hint = "D" + ask[1:] + " " + hint
	}
	return nil, Errorf(OpNotFound, "There is no %s %q", w, name).WithHint("%s", hint)
}

// Call finds an operation and decodes a request of it.
func (t Table) Call(w Way, name string, body []byte) (Call, error) {
	op, err := t.Find(w, name)
	if err != nil {
		return Call{}, err
	}
	m, err := ReadMessage(body)
	if err != nil {
		return Call{}, err
	}
	return op.Call(m)
}

// Operations returns the table of the contract, in its order. It is shared: nobody changes it.
func Operations() Table { return operations }

func of[R any, P interface {
	*R
	Request
}]() Request {
	return P(new(R))
}

var operations = Table{
	{
		Name: "Sample", Ways: ByAction | ByGet | ByExchange, Scope: SampleScope, New: of[Sample], Rows: true, Reads: true,
		Sentence: "Draw images from a model.",
	},
	{
		Name: "EvaluateSchedule", Ways: ByAction | ByGet, Scope: ReadScope, New: of[EvaluateSchedule], Rows: true,
		Reads:    true,
		Sentence: "Tabulate a schedule: g, its derivative and sigma by label, subspace and time.",
	},
	{
		Name: "TrainStep", Ways: ByAction | ByGet | ByExchange, Scope: TrainScope, New: of[TrainStep], Rows: true,
		Sentence: "Take training steps of a run that is not running in the background.",
	},
	{
		Name: "WatchRun", Ways: ByGet, Scope: ReadScope, New: of[WatchRun], Rows: true, Reads: true, Watches: true,
		Sentence: "Follow the rows of a run until it is done, cancelled or paused.",
	},
	{
		Name: "Denoise", Ways: ByExchange, Scope: SampleScope, New: of[Denoise], Rows: true, Reads: true,
		Sentence: "Evaluate a model on noisy images: denoised image, flow and raw output.",
	},
	{
		Name: "ScheduleGradient", Ways: ByExchange, Scope: SampleScope, New: of[ScheduleGradient], Rows: true, Reads: true,
		Sentence: "Estimate the gradient of the trajectory loss with respect to a schedule.",
	},
	{
		Name: "RemoteSchedule", Ways: ByExchange, Scope: TrainScope, New: of[RemoteSchedule], Rows: true,
		Sentence: "Measure or learn a schedule for a network that the client keeps: the server asks, the client evaluates.",
	},
	{
		Name: "EvaluateModel", Ways: ByAction | ByGet, Scope: SampleScope, New: of[EvaluateModel], Rows: true, Reads: true,
		Sentence: "Measure a model's loss by noise level on a data set.",
	},
	{
		Name: "Predict", Ways: ByAction | ByGet, Scope: SampleScope, New: of[Predict], Rows: true, Reads: true,
		Sentence: "Predict how much energy each basis, and schedules per class, can save at best.",
	},
	{
		Name: "BenchSchedule", Ways: ByAction | ByGet, Scope: ReadScope, New: of[BenchSchedule], Rows: true, Reads: true,
		Sentence: "Run solvers on schedules on a data set's own Gaussian, in closed form: exact distances without a model.",
	},
	{
		Name: "Dataset", Ways: ByGet, Scope: ReadScope, New: of[Dataset], Rows: true, Reads: true,
		Sentence: "Read a data set back.",
	},
	{
		Name: "Basis", Ways: ByAction | ByGet, Scope: ReadScope, New: of[Basis], Rows: true, Reads: true,
		Sentence: "Read the vectors of a basis back.",
	},
	{
		Name: "Model", Ways: ByGet, Scope: ReadScope, New: of[Model], Rows: true, Reads: true,
		Sentence: "Read the files of a model back.",
	},

	{
		Name: "PutModel", Ways: ByPut, Scope: TrainScope, New: of[PutModel],
		Sentence: "Upload a model folder: a network's configuration and its weights.",
	},
	{
		Name: "PutConditions", Ways: ByPut, Scope: TrainScope, New: of[PutConditions],
		Sentence: "Upload what a model is given of each label: a table of conditions.",
	},
	{
		Name: "PutDataset", Ways: ByPut, Scope: TrainScope, New: of[PutDataset],
		Sentence: "Upload images and labels as a data set.",
	},
	{
		Name: "PutSchedule", Ways: ByPut, Scope: TrainScope, New: of[PutSchedule],
		Sentence: "Upload a table of (label, subspace, t, g) as a schedule.",
	},
	{
		Name: "PutBasis", Ways: ByPut, Scope: TrainScope, New: of[PutBasis],
		Sentence: "Upload orthonormal vectors as a basis.",
	},

	{
		Name: "ServerInfo", Ways: ByAction, Scope: ReadScope, New: of[Empty], Reads: true,
		Sentence: "Tell version, device, load and memory.",
	},
	{
		Name: "ListModels", Ways: ByAction, Scope: ReadScope, New: of[Empty], Reads: true,
		Sentence: "List the models.",
	},
	{
		Name: "DescribeModel", Ways: ByAction, Scope: ReadScope, New: of[ModelName], Reads: true,
		Sentence: "Describe one model with its configuration.",
	},
	{
		Name: "LoadModel", Ways: ByAction, Scope: AdminScope, New: of[LoadModel],
		Sentence: "Read a model folder and serve it under a name.",
	},
	{
		Name: "UnloadModel", Ways: ByAction, Scope: AdminScope, New: of[ModelName],
		Sentence: "Stop serving a model; its folder stays.",
	},
	{
		Name: "DeleteModel", Ways: ByAction, Scope: AdminScope, New: of[ModelName],
		Sentence: "Delete a model and its folder.",
	},
	{
		Name: "MakeModel", Ways: ByAction, Scope: TrainScope, New: of[MakeModel],
		Sentence: "Make a Gaussian mixture with exact score, of given laws or of a data set's classes, and serve it as a " +
			"model.",
	},
	{
		Name: "ListSchedules", Ways: ByAction, Scope: ReadScope, New: of[Empty], Reads: true,
		Sentence: "List the schedules, those of models included.",
	},
	{
		Name: "MakeSchedule", Ways: ByAction, Scope: TrainScope, New: of[MakeSchedule],
		Sentence: "Make a schedule: the geodesic of a model on a data set, a solver's noise levels on the data's Gaussian, " +
			"its steps along a schedule, or by formula.",
	},
	{
		Name: "ExportSchedule", Ways: ByAction, Scope: ReadScope, New: of[ExportSchedule], Reads: true,
		Sentence: "Give a schedule as its file: everything it holds, with its provenance.",
	},
	{
		Name: "PlanSampler", Ways: ByAction, Scope: ReadScope, New: of[PlanSampler], Reads: true,
		Sentence: "Return a sampler as numbers: where to evaluate the network, and how to combine its answers.",
	},
	{
		Name: "ExportStart", Ways: ByAction, Scope: ReadScope, New: of[ExportPart], Reads: true,
		Sentence: "Return the law of the data that sampling along a schedule starts from, as a file.",
	},
	{
		Name: "ExportStatistics", Ways: ByAction, Scope: ReadScope, New: of[ExportPart], Reads: true,
		Sentence: "Return the statistics of a denoiser that a schedule carries for the solver local, as a file.",
	},
	{
		Name: "ImportSchedule", Ways: ByAction, Scope: TrainScope, New: of[ImportSchedule],
		Sentence: "Store a schedule file.",
	},
	{
		Name: "DeleteSchedule", Ways: ByAction, Scope: AdminScope, New: of[ScheduleName],
		Sentence: "Delete a stored schedule.",
	},
	{
		Name: "ListBases", Ways: ByAction, Scope: ReadScope, New: of[Empty], Reads: true,
		Sentence: "List the stored bases.",
	},
	{
		Name: "MakeBasis", Ways: ByAction, Scope: TrainScope, New: of[MakeBasis],
		Sentence: "Make a basis from a data set: principal components of all images or of each class's, or the Haar " +
			"wavelet's.",
	},
	{
		Name: "DeleteBasis", Ways: ByAction, Scope: AdminScope, New: of[BasisName],
		Sentence: "Delete a stored basis; schedules, runs and models keep their copies.",
	},
	{
		Name: "ListDatasets", Ways: ByAction, Scope: ReadScope, New: of[Empty], Reads: true,
		Sentence: "List the data sets.",
	},
	{
		Name: "MakeDataset", Ways: ByAction, Scope: TrainScope, New: of[MakeDataset],
		Sentence: "Draw a data set from a mixture.",
	},
	{
		Name: "DeleteDataset", Ways: ByAction, Scope: AdminScope, New: of[DatasetName],
		Sentence: "Delete a data set.",
	},
	{
		Name: "ListRuns", Ways: ByAction, Scope: ReadScope, New: of[Empty], Reads: true,
		Sentence: "List the training runs.",
	},
	{
		Name: "GetRun", Ways: ByAction, Scope: ReadScope, New: of[RunName], Reads: true,
		Sentence: "Describe one run with its configuration.",
	},
	{
		Name: "CreateRun", Ways: ByAction, Scope: TrainScope, New: of[CreateRun],
		Sentence: "Create a training run.",
	},
	{
		Name: "StartRun", Ways: ByAction, Scope: TrainScope, New: of[StartRun],
		Sentence: "Train a run in the background.",
	},
	{
		Name: "PauseRun", Ways: ByAction, Scope: TrainScope, New: of[RunName],
		Sentence: "Pause a run after its current step and store its state.",
	},
	{
		Name: "CancelRun", Ways: ByAction, Scope: TrainScope, New: of[RunName],
		Sentence: "End a run after its current step and store its state.",
	},
	{
		Name: "DeleteRun", Ways: ByAction, Scope: AdminScope, New: of[RunName],
		Sentence: "Delete a run and its state.",
	},
	{
		Name: "SaveModel", Ways: ByAction, Scope: TrainScope, New: of[SaveModel],
		Sentence: "Write a run's averaged network and schedule as a model.",
	},
}

// Call is a request of an operation, decoded and validated.
type Call struct {
	Op      *Operation
	Request Request // of the type that Op.New makes
}

// Job is an operation that was checked and priced and has not begun. It holds nothing that would have to be given back.
type Job struct {
	Schema     Schema
	Rows       int64 // −1 where not known beforehand
	Bytes      int64 // of the rows; −1 where not known beforehand
	BatchBytes int64 // that a message may have at the client's wish; 0: the server's choice
	// Run does the work and hands its events to emit, in order, from one goroutine. It ends early with emit's error or
	// the context's. It may be called once.
	Run func(ctx context.Context, emit func(Event) error) error
	// Waits says, at any time and from any goroutine, what Run waits for where that is a compilation:
	// {"event":"compiling",...}; nil otherwise. It may be nil.
	Waits func() Meta
	// Part returns the fields of the request that asks for samples first … first + n − 1 alone, which gives the same
	// bytes where first is a multiple of PartSize and n another, or all that is left; a field that is nil is left out. It
	// is nil where the work cannot be divided.
	Part func(first, n int) Meta
	// Samples are how many there are to divide.
	Samples int
}

// PartSize is what samples are divided at multiples of: none but whole batches, so that each is computed in a batch of
// the size that it would have had.
const PartSize = 64

// Exchange is an open operation that takes tensors in.
type Exchange struct {
	Out        Schema
	Window     int   // batches that the client should keep unanswered
	BatchBytes int64 // as a Job's
	// Begin emits what the server says before the first batch comes, for operations that ask their client. It may be nil.
	Begin func(ctx context.Context, emit func(Event) error) error
	// Do answers one batch, whose columns are those of the schema the exchange was opened with. Calls do not overlap. The
	// batch's memory is lent until Do returns: what it keeps or emits has its own.
	Do func(ctx context.Context, in Batch, emit func(Event) error) error
	// Waits is as a Job's, for Do.
	Waits func() Meta
	// End returns what the last message's metadata says beyond rows and time. It may be nil.
	End func(ctx context.Context) (map[string]any, error)
	// Close releases what the exchange holds, however it ended. Never nil; called once.
	Close func()
}

// Upload receives a table. Nothing is stored before Commit; after it, or Abort, the upload is over.
type Upload interface {
	// Write takes one batch of the schema that the upload was opened with. It does not keep the batch's memory.
	Write(Batch) error
	// Commit checks the whole, stores it and returns the number of its rows.
	Commit() (rows int64, err error)
	// Abort forgets everything received.
	Abort()
}

type clientKey struct{}

// WithClient says for whom the work of a context is done, which is how the device is shared; work without a client is
// one client's.
func WithClient(ctx context.Context, client string) context.Context {
	return context.WithValue(ctx, clientKey{}, client)
}

// ClientOf returns the client of a context, empty where there is none.
func ClientOf(ctx context.Context) string {
	client, _ := ctx.Value(clientKey{}).(string)
	return client
}
