package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/anisoflight/anisoflight/flight/api"
)

// contract returns the Python module of what flight/api says.
func (types structTypes) contract() string {
	var b strings.Builder
	b.WriteString(`"""What the server's contract says of its operations. Made by go generate ./flight/api; do not edit."""

from __future__ import annotations

READS = frozenset(
    {
`)
	for _, op := range api.Operations() {
		if op.Reads && op.By(api.ByAction|api.ByGet) {
			fmt.Fprintf(&b, "        %q,\n", op.Name)
		}
	}
	b.WriteString(`    }
)
"""Operations that change nothing that is stored, which a client may repeat."""

FIELDS = {
`)
	section := func(name, typ string, without ...string) {
		fmt.Fprintf(&b, "    %q: \"\"\"\n", name)
		for _, f := range types[typ].fields {
			if !slices.Contains(without, f.json) && f.group != "Part" {
				b.WriteString(f.line())
			}
		}
		b.WriteString("    \"\"\",\n")
	}
	for _, op := range api.Operations() {
		switch name := requestType(op); {
		case op.Name == "MakeSchedule":
			for _, kind := range api.ScheduleKinds() {
				section(op.Name+" "+kind.Kind(), kindType(kind), "name")
			}
		case op.Name == "CreateRun":
			section(op.Name, "train.Config", "stage", "dataset")
		case len(types[name].fields) > 1:
			section(op.Name, name)
		}
	}
	b.WriteString("}\n\"\"\"The fields of requests with their types and defaults, for docstrings.\"\"\"\n")
	return b.String()
}

// line returns a field's entry of a docstring.
func (f field) line() string {
	const indent, widest = "        ", 118
	text := f.json + ": " + f.python()
	switch {
	case f.required:
		text += ", required"
	case f.deflt != "":
		text += ", default " + f.deflt
	}
	if help := api.WithWords(f.help, f.words); help != "" {
		text += ". " + strings.ToUpper(help[:1]) + help[1:] + "."
	}
	text = strings.ReplaceAll(text, `\`, "")
	out, width := indent, utf8.RuneCountInString(indent)
	for i, word := range strings.Fields(text) {
		if n := utf8.RuneCountInString(word); i > 0 && width+1+n > widest {
			out += "\n" + indent + "    "
			width = utf8.RuneCountInString(indent) + 4
		} else if i > 0 {
			out += " "
			width++
		}
		out += word
		width += utf8.RuneCountInString(word)
	}
	return out + "\n"
}

// python returns the type of a field in Python.
func (f field) python() string { return pythonType(f.typ) }

func pythonType(typ string) string {
	if inner, ok := strings.CutPrefix(typ, "[]"); ok {
		return "Sequence[" + pythonType(inner) + "]"
	}
	switch typ {
	case "int", "int32", "int64", "uint64":
		return "int"
	case "float64":
		return "float"
	case "string":
		return "str"
	case "bool":
		return "bool"
	case "Grid", "ScheduleRef":
		return "str | Mapping[str, Any]"
	case "Channels":
		return "float | Sequence[float] | str"
	case "Levels":
		return "float | Sequence[float]"
	}
	return "Mapping[str, Any]"
}

// own are fields of Sample that Client.sample takes in a form of its own.
var own = []string{"model", "labels"}

// keywords returns the fields that a method of Python takes by their own names.
func (types structTypes) keywords(name string) []field {
	return slices.DeleteFunc(slices.Clone(types[name].fields), func(f field) bool {
		return f.group == "Part" || slices.Contains(own, f.json)
	})
}

// parameters returns the keyword parameters of a method of Python.
func (types structTypes) parameters(name string) string {
	var b strings.Builder
	for _, f := range types.keywords(name) {
		fmt.Fprintf(&b, "        %s: %s | None = None,\n", f.json, f.python())
	}
	return b.String()
}

// arguments returns the same as arguments of a call.
func (types structTypes) arguments(name string) string {
	var b strings.Builder
	for _, f := range types.keywords(name) {
		fmt.Fprintf(&b, "            %s=%s,\n", f.json, f.json)
	}
	return b.String()
}
