package auth

import (
	"fmt"
	"slices"
	"strings"
)

// Scope is a class of operations that a token may be good for. Scopes do not contain each other.
type Scope string

// The scopes.
const (
	Read   Scope = "read"   // look at what is stored
	Sample Scope = "sample" // evaluate networks
	Train  Scope = "train"  // make and change runs, data sets, schedules, bases and models
	Admin  Scope = "admin"  // load, unload and delete
)

var scopes = []Scope{Read, Sample, Train, Admin}

// operations tells the scope that each operation of the contract needs.
var operations = map[Scope]string{
	Read: "ServerInfo ListModels DescribeModel ListSchedules ListBases ListDatasets ListRuns GetRun WatchRun " +
		"EvaluateSchedule ExportSchedule BenchSchedule Dataset Basis",
	Sample: "Sample Denoise ScheduleGradient EvaluateModel Predict",
	Train: "PutDataset PutSchedule PutBasis MakeModel MakeDataset MakeSchedule ImportSchedule MakeBasis CreateRun StartRun PauseRun " +
		"CancelRun TrainStep SaveModel",
	Admin: "LoadModel UnloadModel DeleteModel DeleteSchedule DeleteBasis DeleteDataset DeleteRun",
}

var byOperation = func() map[string]Scope {
	m := map[string]Scope{}
	for s, names := range operations {
		for name := range strings.FieldsSeq(names) {
			m[name] = s
		}
	}
	return m
}()

// ScopeOf gives the scope that an operation needs: what is not in the table needs Admin.
func ScopeOf(operation string) Scope {
	if s, ok := byOperation[operation]; ok {
		return s
	}
	return Admin
}

// ParseScopes reads a list such as "read,sample".
func ParseScopes(text string) ([]Scope, error) {
	var list []Scope
	for word := range strings.SplitSeq(text, ",") {
		s := Scope(word)
		if !slices.Contains(scopes, s) {
			return nil, fmt.Errorf("auth: %q is not a scope: read, sample, train or admin", word)
		}
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list, nil
}
