package api

// goneOperations has what to do in place of the operations of 0.1, by name.
var goneOperations = map[string]string{
	"Advise": "anisoflight data inspect prints T and c; Predict compares subspaces, MakePlan searches samplers.",
	"BenchSchedule": "MakeSchedule's summary compares schedules on the data's Gaussian; anisoflight.fid measures " +
		"samples.",
	"ExportStatistics": "MakePlan measures them for its own use. PlanSampler with plan returns a whole sampler.",
	"ExportFitted":     "A fitted sampler is a plan now: PlanSampler with plan returns it.",
}

// goneKinds has what to ask for in place of the kinds of MakeSchedule of 0.1, by name.
var goneKinds = map[string]string{
	"gaussian": "MakePlan searches levels and solver on the model (few in Python). Stored ones are plans now: sample " +
		"with plan.",
	"few": "MakePlan makes a plan (few in Python); sample with plan in place of schedule and nfe. Stored ones are " +
		"plans now.",
	"fit": "MakePlan fits coefficients, too (few in Python). Stored ones are plans now: sample with plan.",
}

// goneSolvers has what to ask for in place of the solvers of 0.1, by name.
var goneSolvers = map[string]string{
	"local":  "Plans by MakePlan step by it where that is best.",
	"fitted": "A fitted sampler is a plan: sample with plan in place of schedule, solver and nfe.",
}
