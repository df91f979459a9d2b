package api

// goneOperations has what to do in place of the operations of 0.1, by name.
var goneOperations = map[string]string{
	"Advise":        "anisoflight data inspect prints T and c; Predict compares subspaces, kind few searches samplers.",
	"BenchSchedule": "MakeSchedule's summary compares schedules on the data's Gaussian; anisoflight.fid measures samples.",
}

// goneKinds has what to ask for in place of the kinds of MakeSchedule of 0.1, by name.
var goneKinds = map[string]string{
	"gaussian": "Kind few searches levels and solver on the model. Stored schedules are read as before.",
}
