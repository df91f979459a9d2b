package cli

// trainRequest are the fields of a run's configuration, by their own names: those
// of CreateRun and of the files in configs/.
var trainRequest = []option{
	{name: "stage", usage: "pretrain, isotropic or anisotropic"},
	{name: "dataset", usage: "`name` of the data set"},
	{name: "model", usage: "`name` of the model to start from"},
	{name: "network", kind: object, usage: "`JSON` of a new network, as in a model's config.json"},
	{name: "schedule", kind: object, usage: "`name` of the schedule to start from"},
	{name: "family", kind: object, usage: "`JSON` such as {\"per_class\":false,\"basis\":\"dct\",\"k\":16}"},
}
