package api

import (
	"encoding/json"
	"slices"

	"github.com/anisoflight/anisoflight/internal/base/suggest"
)

// Operation describes an operation of the server: how it is called, the scope that it needs, and its requests.
type Operation struct {
	Name     string
	Ways     Way
	Scope    Scope
	New      func() Request // returns an empty request of the operation's type
	Rows     bool           // it moves tensors or tables; its action returns IPC streams instead of JSON
	Reads    bool           // it changes nothing that is stored
	Row      any            // an empty row if the operation returns a table of numbers, otherwise nil
	Reply    any            // an empty reply if the action returns JSON, otherwise nil
	Watches  bool           // it waits for others, and does not count as an active request
	Sentence string
}

// By reports whether the operation can be called in a way.
func (o *Operation) By(w Way) bool { return o.Ways&w != 0 }

// Call decodes a request of the operation. The message need not name the operation.
func (o *Operation) Call(m Message) (Call, error) {
	if m.op != nil && string(m.op) != `"`+o.Name+`"` {
		return Call{}, Errorf(BadRequest, "op must be %q, which is called, got %s", o.Name, describe(m.op)).
			WithHint("Leave it out, or call the other operation.")
	}
	req := o.New()
	err := m.Decode(req)
	return Call{Op: o, Request: req}, err
}

// Way is a set of Flight's calls by which an operation can be called.
type Way uint8

// The ways. Except in DoAction, the JSON names the operation as "op".
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

// String returns the word for an operation that is called in a way.
func (w Way) String() string { return wayNames[w] }

// Scope is a set of operations that a token may allow. No scope contains another.
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

// Named returns the operation of a name, nil if there is none.
func (t Table) Named(name string) *Operation {
	for _, op := range t {
		if op.Name == name {
			return op
		}
	}
	return nil
}

// Find returns the operation of a name that can be called in a way.
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
	if w == ByAction && slices.Contains(standardActions, name) {
		return nil, Errorf(Unimplemented, "The action %s of Arrow Flight is not served here", name).
			WithHint("ListActions lists those that are.")
	}
	if instead, ok := goneOperations[name]; ok {
		return nil, Errorf(OpNotFound, "%s is gone since 0.1", name).WithHint("%s", instead)
	}
	hint := "docs/wire.md lists them, and ListActions the actions."
	if ask := suggest.DidYouMean(name, names); ask != "" {
		hint = "D" + ask[1:] + " " + hint
	}
	return nil, Errorf(OpNotFound, "There is no %s %q", w, name).WithHint("%s", hint)
}

// standardActions are the actions that Flight and Flight SQL define. Clients try them, and continue if they are
// UNIMPLEMENTED.
var standardActions = []string{
	"CancelFlightInfo", "RenewFlightEndpoint", "SetSessionOptions", "GetSessionOptions", "CloseSession",
	"CreatePreparedStatement", "CreatePreparedSubstraitPlan", "ClosePreparedStatement", "CancelQuery",
	"BeginTransaction", "EndTransaction", "BeginSavepoint", "EndSavepoint",
}

// Call finds an operation and decodes its request.
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

// Operations returns the table of the contract, in its order. It is shared and must not be changed.
func Operations() Table { return operations }

// reads returns the row of an operation that changes nothing that is stored, and writes that of another.
func reads[R any](name string, ways Way, scope Scope, sentence string) *Operation {
	op := writes[R](name, ways, scope, sentence)
	op.Reads = true
	return op
}

func writes[R any](name string, ways Way, scope Scope, sentence string) *Operation {
	return &Operation{
		Name: name, Ways: ways, Scope: scope, Sentence: sentence, Rows: ways&(ByGet|ByExchange) != 0,
		New: func() Request { return new(R) },
	}
}

// replying returns the row of an operation with the type of its reply.
func (o *Operation) replying(reply any) *Operation {
	o.Reply = reply
	return o
}

// giving returns the row of an operation with the type of its rows.
func (o *Operation) giving(row any) *Operation {
	o.Row = row
	return o
}

func watches(op *Operation) *Operation {
	op.Watches = true
	return op
}

var operations = Table{
	reads[Sample]("Sample", ByAction|ByGet|ByExchange, SampleScope, "Draw images from a model."),
	reads[EvaluateSchedule]("EvaluateSchedule", ByAction|ByGet, ReadScope,
		"Tabulate a schedule: g, its derivative and sigma by label, subspace and time.").
		giving(ScheduleRow{}),
	writes[TrainStep]("TrainStep", ByAction|ByGet|ByExchange, TrainScope,
		"Take training steps of a run that is not running in the background."),
	watches(reads[WatchRun]("WatchRun", ByGet, ReadScope,
		"Follow the rows of a run until it is done, cancelled or paused.")),
	reads[Denoise]("Denoise", ByExchange, SampleScope,
		"Evaluate a model on noisy images: denoised image, flow and raw output."),
	reads[ScheduleGradient]("ScheduleGradient", ByExchange, SampleScope,
		"Estimate the gradient of the trajectory loss with respect to a schedule."),
	writes[OfferNetwork]("OfferNetwork", ByExchange, TrainScope,
		"Find a sampler for a network that the client keeps and evaluates."),
	reads[EvaluateModel]("EvaluateModel", ByAction|ByGet, SampleScope,
		"Measure a model's loss by noise level on a data set.").
		giving(EvaluationRow{}),
	reads[Predict]("Predict", ByAction|ByGet, SampleScope,
		"Predict the energy that each basis, and schedules per class, can save.").
		giving(PredictionRow{}),
	reads[Dataset]("Dataset", ByGet, ReadScope, "Read a data set back."),
	reads[Basis]("Basis", ByAction|ByGet, ReadScope, "Read the vectors of a basis back."),
	reads[Model]("Model", ByGet, ReadScope, "Read the files of a model back."),

	writes[PutModel]("PutModel", ByPut, TrainScope,
		"Upload a model folder: a network's configuration and its weights."),
	writes[PutDataset]("PutDataset", ByPut, TrainScope, "Upload images and labels as a data set."),
	writes[PutSchedule]("PutSchedule", ByPut, TrainScope, "Upload a table of (label, subspace, t, g) as a schedule."),
	writes[PutBasis]("PutBasis", ByPut, TrainScope, "Upload orthonormal vectors as a basis."),

	reads[Empty]("ServerInfo", ByAction, ReadScope, "Report version, device, load and memory.").
		replying(ServerInfo{}),
	reads[Empty]("ListModels", ByAction, ReadScope, "List the models.").
		replying([]ModelInfo{}),
	reads[ModelName]("DescribeModel", ByAction, ReadScope, "Describe one model with its configuration.").
		replying(ModelInfo{}),
	writes[LoadModel]("LoadModel", ByAction, AdminScope, "Serve a model folder, or a served model by another name.").
		replying(ModelInfo{}),
	writes[ModelName]("UnloadModel", ByAction, AdminScope, "Stop serving a model; its folder stays."),
	writes[ModelName]("DeleteModel", ByAction, AdminScope, "Delete a model and its folder."),
	writes[MakeModel]("MakeModel", ByAction, TrainScope,
		"Make a model with exact score, a Gaussian mixture.").
		replying(ModelInfo{}),
	reads[Empty]("ListSchedules", ByAction, ReadScope, "List the schedules, also those of models.").
		replying([]ScheduleInfo{}),
	writes[MakeSchedule]("MakeSchedule", ByAction, TrainScope,
		"Make a schedule.").
		replying(ScheduleInfo{}),
	reads[ExportSchedule]("ExportSchedule", ByAction, ReadScope,
		"Return the file of a schedule.").
		replying(json.RawMessage{}),
	reads[ExportStart]("ExportStart", ByAction, ReadScope,
		"Return the file of a schedule's start.").
		replying(StartFile{}),
	writes[ImportSchedule]("ImportSchedule", ByAction, TrainScope, "Store a schedule file.").
		replying(ScheduleInfo{}),
	writes[ScheduleName]("DeleteSchedule", ByAction, AdminScope, "Delete a stored schedule."),
	reads[Empty]("ListPlans", ByAction, ReadScope, "List the stored plans.").
		replying([]PlanInfo{}),
	writes[MakePlan]("MakePlan", ByAction, TrainScope,
		"Search the sampler that is best for a model in few evaluations.").
		replying(Plan{}),
	writes[EndSearch]("EndSearch", ByAction, TrainScope, "End a search of MakePlan with the best plan so far."),
	reads[PlanSampler]("PlanSampler", ByAction, ReadScope,
		"Return a sampler as numbers.").
		replying(Plan{}),
	writes[ImportPlan]("ImportPlan", ByAction, TrainScope, "Store a plan.").
		replying(PlanInfo{}),
	writes[PlanName]("DeletePlan", ByAction, AdminScope, "Delete a stored plan."),
	reads[Empty]("ListBases", ByAction, ReadScope, "List the stored bases.").
		replying([]BasisInfo{}),
	writes[MakeBasis]("MakeBasis", ByAction, TrainScope,
		"Make a basis: principal components of a data set, of all images or by class, or Haar wavelets.").
		replying(BasisInfo{}),
	writes[BasisName]("DeleteBasis", ByAction, AdminScope,
		"Delete a stored basis; schedules, runs and models keep their copies."),
	reads[Empty]("ListDatasets", ByAction, ReadScope, "List the data sets.").
		replying([]DatasetInfo{}),
	writes[MakeDataset]("MakeDataset", ByAction, TrainScope, "Draw a data set from a mixture.").
		replying(DatasetInfo{}),
	writes[DatasetName]("DeleteDataset", ByAction, AdminScope, "Delete a data set."),
	reads[Empty]("ListRuns", ByAction, ReadScope, "List the training runs.").
		replying([]RunInfo{}),
	reads[RunName]("GetRun", ByAction, ReadScope, "Describe one run with its configuration.").
		replying(RunInfo{}),
	writes[CreateRun]("CreateRun", ByAction, TrainScope, "Create a training run.").
		replying(RunInfo{}),
	writes[StartRun]("StartRun", ByAction, TrainScope, "Train a run in the background.").
		replying(RunInfo{}),
	writes[RunName]("PauseRun", ByAction, TrainScope, "Pause a run after its current step, with its state stored.").
		replying(RunInfo{}),
	writes[RunName]("CancelRun", ByAction, TrainScope, "End a run after its current step, with its state stored.").
		replying(RunInfo{}),
	writes[RunName]("DeleteRun", ByAction, AdminScope, "Delete a run and its state."),
	writes[SaveModel]("SaveModel", ByAction, TrainScope, "Write a run's averaged network and schedule as a model.").
		replying(ModelInfo{}),
}

// Call is a decoded and validated request of an operation.
type Call struct {
	Op      *Operation
	Request Request // of the type that Op.New returns
}
