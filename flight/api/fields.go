package api

import (
	"cmp"
	"reflect"
	"strings"

	"github.com/anisoflight/anisoflight/internal/base/suggest"
)

//go:generate go run github.com/anisoflight/anisoflight/internal/apigen

// Field describes a field of a request to people: in the help of a flag, in a docstring, in a table of docs/wire.md.
// Its words are those of the field's comment, as package apigen has read them.
type Field struct {
	Name     string // in JSON
	Type     reflect.Type
	Help     string   // what it is
	Default  string   // what holds if it is left out, in words; may be empty
	Required bool     // it cannot be left out
	Words    []string // that the value, or each of a list, may be; empty if that is not known here
	Group    string   // name of the embedded struct that it comes from, such as Output; empty for the request's own
}

// Fields lists the fields of a struct, or of what a pointer points to, in the order of its declaration; those of
// embedded structs in their place.
func Fields(request any) []Field { return fieldsOf(reflect.TypeOf(request), "") }

func fieldsOf(t reflect.Type, group string) []Field {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var all []Field
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			all = append(all, fieldsOf(f.Type, cmp.Or(group, f.Name))...)
		case f.IsExported() && name != "" && name != "-":
			field := helps[t.String()+"."+f.Name]
			field.Name, field.Type, field.Words, field.Group = name, f.Type, wordsOf(f), group
			all = append(all, field)
		}
	}
	return all
}

// WithWords returns a help that ends in the words that the value may be, unless it names them all.
func WithWords(help string, words []string) string {
	for _, word := range words {
		if strings.Contains(help, word) {
			continue
		}
		return strings.TrimPrefix(help+": "+strings.Join(words, ", "), ": ")
	}
	return help
}

// wordLists are the lists that the tag oneof may name in place of words.
var wordLists = map[string]*[]string{
	"solvers": &Solvers, "grids": &GridNames, "modes": &Modes, "precisions": &Precisions, "covariances": &Covariances,
}

// wordsOf returns the words of a field's tag oneof.
func wordsOf(f reflect.StructField) []string {
	tag := f.Tag.Get("oneof")
	if list := wordLists[tag]; list != nil {
		return *list
	}
	return strings.Fields(tag)
}

// checkWords wants each field of a request with the tag oneof, a text or a list of texts, to be one of its words. A
// text that JSON may leave out may be empty.
func checkWords(request any) error { return checkWordsOf(reflect.ValueOf(request).Elem()) }

func checkWordsOf(v reflect.Value) error {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			if err := checkWordsOf(v.Field(i)); err != nil {
				return err
			}
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		var given []string
		switch value := v.Field(i).Interface().(type) {
		case string:
			if value != "" || options != "omitempty" {
				given = []string{value}
			}
		case []string:
			given = value
		}
		words := wordsOf(f)
		for _, word := range given {
			if wrong := suggest.OneOf(word, words); len(words) > 0 && wrong != "" {
				return Errorf(BadRequest, "%s %s", name, wrong)
			}
		}
	}
	return nil
}
