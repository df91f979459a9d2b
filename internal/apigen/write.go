package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/train"
)

// facts replaces placeholders in comments by what the register of solvers says.
var facts = strings.NewReplacer(
	"{churning solvers}", solversWhere(func(m solver.Method) bool { return m.Churns }),
	"{warming solvers}", solversWhere(func(m solver.Method) bool { return m.WarmsUp }),
	"{orders}", usualOrders(),
)

func solversWhere(holds func(solver.Method) bool) string {
	return strings.Join(solver.NamesOf(holds), ", ")
}

// usualOrders returns the default orders of solvers with several: "2 for a; 3 for b, c".
func usualOrders() string {
	byOrder := map[int][]string{}
	for _, m := range solver.Methods() {
		if m.MostOrder > 0 {
			byOrder[m.UsualOrder] = append(byOrder[m.UsualOrder], m.Name)
		}
	}
	var all []string
	for _, order := range slices.Sorted(maps.Keys(byOrder)) {
		all = append(all, fmt.Sprintf("%d for %s", order, strings.Join(byOrder[order], ", ")))
	}
	return strings.Join(all, "; ")
}

// documented are the operations whose methods in Python pass on fields by name, which their docstrings list.
var documented = []string{
	"Sample", "EvaluateModel", "Predict", "MakeModel", "MakeSchedule", "MakePlan", "MakeBasis", "CreateRun",
}

// contract returns the Python module of what flight/api says.
func (c comments) contract() string {
	var b strings.Builder
	b.WriteString(`"""What the server's contract says of its operations. Made by go generate ./flight/api; do not edit."""

from __future__ import annotations

READS = frozenset(
    """
`)
	var reads []string
	for _, op := range api.Operations() {
		if op.Reads && op.By(api.ByAction|api.ByGet) {
			reads = append(reads, op.Name)
		}
	}
	b.WriteString(wrapped(reads, "    ", "    "))
	b.WriteString(`    """.split()  # noqa: SIM905
)
"""Operations that change nothing that is stored, which a client may repeat."""

FIELDS = {
`)
	var names, bodies []string
	section := func(name string, t reflect.Type, without ...string) {
		var body string
		for _, f := range c.fields(t) {
			if !slices.Contains(without, f.Name) && f.Group != "Part" {
				body += docstring(f)
			}
		}
		if last := len(bodies) - 1; last >= 0 && bodies[last] == body { // formulas of schedules, which have the same fields
			names[last] += ", " + name
			return
		}
		names, bodies = append(names, name), append(bodies, body)
	}
	for _, op := range api.Operations() {
		switch {
		case !slices.Contains(documented, op.Name):
		case op.Name == "MakeSchedule":
			for _, kind := range api.ScheduleKinds() {
				section(op.Name+" "+kind.Kind(), kindType(kind), "name")
			}
		case op.Name == "CreateRun":
			section(op.Name, reflect.TypeFor[train.Config](), "stage", "dataset")
		default:
			section(op.Name, requestType(op))
		}
	}
	for i, name := range names {
		fmt.Fprintf(&b, "    %q: \"\"\"\n%s    \"\"\",\n", name, bodies[i])
	}
	b.WriteString("}\n\"\"\"The fields of requests with their types and defaults, for docstrings.\"\"\"\n")
	return b.String()
}

// docstring returns a field's entry of a docstring.
func docstring(f api.Field) string {
	text := f.Name + ": " + python(f.Type)
	switch {
	case f.Required:
		text += ", required"
	case f.Default != "":
		text += ", default " + f.Default
	}
	if help := api.WithWords(f.Help, f.Words); help != "" {
		text += ". " + strings.ToUpper(help[:1]) + help[1:] + "."
	}
	const indent = "        "
	return wrapped(strings.Fields(strings.ReplaceAll(text, `\`, "")), indent, indent+"    ")
}

// wrapped returns words in lines, the first and the rest with their indents.
func wrapped(words []string, first, rest string) string {
	out, line := "", first
	for i, word := range words {
		switch {
		case i == 0:
			line += word
		case utf8.RuneCountInString(line+" "+word) > 118:
			out, line = out+line+"\n", rest+word
		default:
			line += " " + word
		}
	}
	return out + line + "\n"
}

// python returns the type of a field in Python.
func python(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[api.Grid](), reflect.TypeFor[api.ScheduleRef]():
		return "str | Mapping[str, Any]"
	case reflect.TypeFor[api.PlanRef]():
		return "str | Plan | Mapping[str, Any]"
	case reflect.TypeFor[api.Channels]():
		return "float | Sequence[float] | str"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return python(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 { // of JSON
			return "Sequence[" + python(t.Elem()) + "]"
		}
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		return "int"
	case reflect.Float64:
		return "float"
	case reflect.String:
		return "str"
	case reflect.Bool:
		return "bool"
	}
	return "Mapping[str, Any]"
}

// keywords returns the fields that a method of Python takes by their own names, as its parameters. It takes model and
// labels in a form of its own.
func (c comments) keywords(t reflect.Type) string {
	var parameters string
	for _, f := range c.fields(t) {
		if f.Group != "Part" && f.Name != "model" && f.Name != "labels" {
			parameters += fmt.Sprintf("        %s: %s | None = None,\n", f.Name, python(f.Type))
		}
	}
	return parameters
}

// table returns a table of Markdown whose first row is its head, with empty lines around it.
func table(rows ...[]string) string {
	text := "\n"
	for i, row := range rows {
		line := "| " + strings.Join(row, " | ") + " |\n"
		if i == 0 {
			line = strings.ReplaceAll(line, "|  |", "| |") + strings.Repeat("|---", len(row)) + "|\n"
		}
		text += line
	}
	return text + "\n"
}

// cell returns text for a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// fieldTable returns a table of a request's fields.
func (c comments) fieldTable(t reflect.Type) string {
	rows := [][]string{{"field (default)", ""}}
	for _, f := range c.fields(t) {
		name := "`" + f.Name + "`"
		switch {
		case f.Required:
			name += " (required)"
		case f.Default != "":
			name += " (" + cell(f.Default) + ")"
		}
		rows = append(rows, []string{name, cell(api.WithWords(f.Help, f.Words))})
	}
	return table(rows...)
}

// longestDefault bounds the bytes of a default in a list of fields.
const longestDefault = 30

// fieldList returns a request's fields with their defaults, where these are short, except those of an embedded struct.
func (c comments) fieldList(t reflect.Type, without string) string {
	var list []string
	for _, f := range c.fields(t) {
		if f.Group != "" && f.Group == without {
			continue
		}
		text := "`" + f.Name + "`"
		if f.Default != "" && len(f.Default) <= longestDefault {
			text += " (" + f.Default + ")"
		}
		list = append(list, cell(text))
	}
	return strings.Join(list, ", ")
}

// operations returns a table of the operations that move tensors and tables.
func (c comments) operations() string {
	rows := [][]string{{"operation: ways", "fields (default)", "rows out"}}
	for _, op := range api.Operations() {
		if !op.Rows {
			continue
		}
		var ways []string
		for i, name := range []string{"action", "get", "exchange"} {
			if op.By(api.ByAction << i) {
				ways = append(ways, name)
			}
		}
		fields, doc := c.fieldList(requestType(op), ""), c[requestType(op).String()]
		if op.Name == "Sample" {
			fields = "[below](#sample)"
		}
		_, said, _ := strings.Cut(doc, "Rows ")
		said = strings.Join(strings.Fields(said), " ")
		if op.Row != nil {
			said = strings.TrimSuffix(said, ".") + ": " + c.columns(reflect.TypeOf(op.Row)) + "."
		}
		if rest, ok := strings.CutPrefix(said, "out"); ok {
			said = strings.TrimLeft(rest, ":, ")
		} else {
			said = "Rows " + said
		}
		said = cell(said)
		rows = append(rows, []string{"`" + op.Name + "`: " + strings.Join(ways, ", "), fields, said})
	}
	return table(rows...)
}

// columns lists the columns of a table of numbers: the type is that of all columns up to the one before.
func (c comments) columns(row reflect.Type) string {
	var list []string
	for i := range row.NumField() {
		f := row.Field(i)
		text := f.Tag.Get("json")
		if i+1 == row.NumField() || row.Field(i+1).Type != f.Type {
			text += " " + f.Type.String()
		}
		if comment := strings.Join(strings.Fields(c[row.String()+"."+f.Name]), " "); comment != "" {
			text += " (" + comment + ")"
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// actions returns a table of the actions that answer with JSON. Those that list, and those that delete, share a row.
func (c comments) actions() string {
	rows := [][]string{{"action: fields (default)", ""}}
	var lists, deletes []string
	for _, op := range api.Operations() {
		if !op.By(api.ByAction) || op.Rows {
			continue
		}
		fields := c.fieldList(requestType(op), "Sample")
		switch op.Name {
		case "MakeSchedule":
			fields = "`name`, `kind`, `replace`, and those of the [kind](#kinds-of-schedule)"
		case "PlanSampler":
			fields = "those of [Sample](#sample), " + fields
		}
		name := "`" + op.Name + "`"
		if fields != "" {
			name += ": " + fields
		}
		switch {
		case strings.HasPrefix(op.Name, "List"):
			lists = append(lists, name)
		case strings.HasPrefix(op.Name, "Delete"):
			deletes = append(deletes, name)
		default:
			rows = append(rows, []string{name, cell(op.Sentence)})
		}
	}
	return table(append(rows, []string{strings.Join(lists, ", "), "List what is stored."},
		[]string{strings.Join(deletes, ", "), "Delete it; what was made from it stays."})...)
}

// kinds returns a table of the kinds of MakeSchedule.
func (c comments) kinds() string {
	rows := [][]string{{"kind", "fields (default), besides `name` and `replace`"}}
	for _, kind := range api.ScheduleKinds() {
		fields := c.fieldList(kindType(kind), "NewSchedule")
		if last := rows[len(rows)-1]; last[1] == fields { // formulas, which have the same fields
			last[0] += ", " + kind.Kind()
			continue
		}
		rows = append(rows, []string{kind.Kind(), fields})
	}
	return table(rows...)
}

// scopes returns a table of the operations by the scope that they need.
func scopes() string {
	rows := [][]string{{"scope", "operations"}}
	for _, scope := range api.Scopes {
		var names []string
		for _, op := range api.Operations() {
			if op.Scope == scope {
				names = append(names, op.Name)
			}
		}
		if scope == api.ReadScope {
			names = append(names, "ListFlights", "ListActions")
		}
		rows = append(rows, []string{string(scope), strings.Join(names, ", ")})
	}
	return table(rows...)
}
