package api

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// MakeSchedule makes a schedule and stores it. Its JSON is that of its kind with the kind's name as "kind".
type MakeSchedule struct{ Of ScheduleKind }

// ScheduleKind is a request for a schedule of one kind: a *GeodesicSchedule, *GaussianSchedule, *StartSchedule,
// *FitSchedule, *FewSchedule, *WeightSchedule or *FormulaSchedule.
type ScheduleKind interface {
	Request
	// Kind returns the kind's name.
	Kind() string
	// Stored returns what the kinds have in common.
	Stored() NewSchedule
}

// scheduleKinds lists the kinds by their names.
var scheduleKinds = []func() ScheduleKind{
	func() ScheduleKind { return new(GeodesicSchedule) },
	func() ScheduleKind { return new(GaussianSchedule) },
	func() ScheduleKind { return new(StartSchedule) },
	func() ScheduleKind { return new(FitSchedule) },
	func() ScheduleKind { return new(FewSchedule) },
	func() ScheduleKind { return new(WeightSchedule) },
	func() ScheduleKind { return &FormulaSchedule{Formula: "edm"} },
	func() ScheduleKind { return &FormulaSchedule{Formula: "log-linear"} },
	func() ScheduleKind { return &FormulaSchedule{Formula: "cosine"} },
}

// ScheduleKinds returns an empty request of each kind.
func ScheduleKinds() []ScheduleKind {
	kinds := make([]ScheduleKind, len(scheduleKinds))
	for i, fresh := range scheduleKinds {
		kinds[i] = fresh()
	}
	return kinds
}

// Validate implements Request.
func (r *MakeSchedule) Validate() error {
	return Validate(r.Of)
}

// decodeStrictly decodes the kind that "kind" names. A field of another kind is refused with the kinds that take it.
func (r *MakeSchedule) decodeStrictly(at place, v rawValue) error {
	if v.Kind() != '{' {
		return wrongJSON(at, "an object", v)
	}
	var name string
	kind, object := take(v, "kind")
	if kind != nil {
		if err := decodeJSON(kind, at.field("kind"), &name); err != nil {
			return err
		}
	}
	var names []string
	takers := map[string][]string{} // kinds by field
	for _, fresh := range scheduleKinds {
		kind := fresh()
		names = append(names, kind.Kind())
		for _, field := range Fields(kind) {
			takers[field.Name] = append(takers[field.Name], kind.Kind())
		}
		if kind.Kind() == name {
			r.Of = kind
		}
	}
	if r.Of == nil {
		return first(need("kind", name), oneOf("kind", name, names...))
	}
	for _, field := range slices.Sorted(maps.Keys(fieldsIn(object))) {
		if kinds := takers[field]; kinds != nil && !slices.Contains(kinds, name) {
			return Errorf(BadRequest, "%s must be left out of a schedule of kind %s; only %s take it",
				at.field(field), name, strings.Join(kinds, ", "))
		}
	}
	SetDefaults(r.Of)
	return decodeJSON(object, at, r.Of)
}

// MarshalJSON writes the kind's fields beside its name, as they travel.
func (r MakeSchedule) MarshalJSON() ([]byte, error) {
	own, err := json.Marshal(r.Of)
	if err != nil {
		return nil, err
	}
	return encodeWithRest(map[string]string{"kind": r.Of.Kind()}, own)
}
