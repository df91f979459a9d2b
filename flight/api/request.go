package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/internal/base/suggest"
)

//go:generate go run github.com/anisoflight/anisoflight/internal/apigen

// Request is a pointer to a struct that is sent as JSON. The tags of its fields, also of embedded structs, have the
// defaults and the allowed values:
//
//	default:"256"      value of a missing field
//	min:"2" max:"4096" bounds of a number, or of each entry of a list; above max is TOO_LARGE
//	above:"0"          exclusive lower bound
//	given:"1"          lower bound of a number that may be missing, which is then 0
//	oneof:"a b"        allowed words of a text, or of each entry of a list, or the name of one of wordLists
//	name:"new"         the text is a well-formed name
//
// A text whose comment ends in "; required" must not be empty. A request may have the methods SetDefaults() and
// Validate() error for everything that tags cannot say.
type Request any

// unset marks a missing number with the tag given.
const unset = -1 << 62

// SetDefaults sets the defaults of a request, before it is decoded.
func SetDefaults(request Request) {
	eachField(reflect.ValueOf(request).Elem(), "", func(f Field, v reflect.Value) error {
		if setting.SetDefault(v, f.Tag); f.Tag.Get("given") != "" {
			v.SetInt(unset)
		}
		return nil
	})
	if r, ok := request.(interface{ SetDefaults() }); ok {
		r.SetDefaults()
	}
}

// Validate checks a decoded request by its tags and its method Validate. Its error is an *Error.
func Validate(request Request) error {
	if err := validateFields(request); err != nil {
		return err
	}
	if r, ok := request.(interface{ Validate() error }); ok {
		return r.Validate()
	}
	return nil
}

// validateFields checks the fields of a request by their tags.
func validateFields(request any) error {
	return eachField(reflect.ValueOf(request).Elem(), "", func(f Field, v reflect.Value) error {
		switch {
		case v.CanInt() && v.Int() == unset:
			v.SetInt(0)
			return nil
		case v.CanInt(), v.CanFloat():
			return validateNumber(f.Name, f.Tag, v)
		case f.Type == reflect.TypeFor[*int]() && !v.IsNil():
			return validateNumber(f.Name, f.Tag, v.Elem())
		case f.Type == reflect.TypeFor[[]int]():
			for i := range v.Len() {
				if err := validateNumber(f.Name, f.Tag, v.Index(i)); err != nil {
					return err
				}
			}
			return nil
		}
		// A field that Sample requires may be missing in a request that embeds Sample.
		missing := v.Kind() == reflect.String && v.Len() == 0
		switch v := v.Interface().(type) {
		case json.RawMessage:
			missing = len(v) == 0
		case ScheduleRef:
			missing = !v.Given()
		}
		if missing && f.Required && f.Group != "Sample" {
			return Errorf(BadRequest, "%s is missing", f.Name)
		}
		if f.Tag.Get("name") != "" {
			return CheckName(f.Name, v.String())
		}
		var words []string
		switch value := v.Interface().(type) {
		case string:
			if value != "" || !f.omitted {
				words = []string{value}
			}
		case []string:
			words = value
		}
		for _, word := range words {
			if wrong := suggest.OneOf(word, f.Words); len(f.Words) > 0 && wrong != "" {
				if instead, ok := goneSolvers[word]; ok && (f.Name == "solver" || f.Name == "solvers") {
					return Errorf(BadRequest, "The solver %s is gone since 0.1", word).WithHint("%s", instead)
				}
				return Errorf(BadRequest, "%s %s", f.Name, wrong)
			}
		}
		return nil
	})
}

func validateNumber(name string, tag reflect.StructTag, v reflect.Value) error {
	switch err := setting.CheckNumber(name, v, tag); {
	case err == nil:
		return nil
	case err.TooLarge:
		return Errorf(TooLarge, "%s", err.Error())
	default:
		return Errorf(BadRequest, "%s", err.Error())
	}
}

// Field describes a field of a request, for the help of flags, docstrings and the tables of docs/wire.md. Package
// apigen reads the words from the field's comment.
type Field struct {
	Name     string // in JSON
	Type     reflect.Type
	Help     string
	Default  string   // in words; may be empty
	Required bool     // it must be given
	Words    []string // allowed words of the value, or of each entry of a list; empty if there is no such list
	Group    string   // name of the embedded struct that it comes from, such as Output; empty for none
	Key      string   // its struct and name in Go, such as api.Sample.Model
	Tag      reflect.StructTag

	omitted bool // its JSON has omitempty
}

// Fields lists the fields of a struct, or of a pointer's target, in the order of their declaration, including those of
// embedded structs.
func Fields(request any) []Field {
	v := reflect.ValueOf(request)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	var all []Field
	_ = eachField(v, "", func(f Field, _ reflect.Value) error {
		all = append(all, f)
		return nil
	})
	return all
}

// eachField calls do with each field that Fields lists and its value, until do returns an error.
func eachField(v reflect.Value, group string, do func(Field, reflect.Value) error) error {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		var err error
		switch {
		case f.Anonymous && name == "":
			err = eachField(v.Field(i), cmp.Or(group, f.Name), do)
		case f.IsExported() && name != "" && name != "-":
			key := t.String() + "." + f.Name
			field := helps[key]
			field.Name, field.Type, field.Words, field.Group = name, f.Type, wordsOf(f), group
			field.Key, field.Tag, field.omitted = key, f.Tag, options == "omitempty"
			err = do(field, v.Field(i))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// WithWords returns a help followed by the allowed words, unless it names them all.
func WithWords(help string, words []string) string {
	if slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(help, word) }) {
		return strings.TrimPrefix(help+": "+strings.Join(words, ", "), ": ")
	}
	return help
}

// wordLists are the lists that the tag oneof may name.
var wordLists = map[string]*[]string{
	"solvers": &Solvers, "grids": &GridNames, "modes": &Modes, "precisions": &Precisions, "ramps": &Ramps,
}

// wordsOf returns the words of a field's tag oneof.
func wordsOf(f reflect.StructField) []string {
	tag := f.Tag.Get("oneof")
	if list := wordLists[tag]; list != nil {
		return *list
	}
	return strings.Fields(tag)
}

// Message is the JSON of a request that has been read strictly but not yet decoded.
type Message struct {
	value rawValue // without the field "op"
	op    rawValue // the field "op"; nil if there is none
}

// ReadMessage reads one JSON value. Empty input is the empty object.
func ReadMessage(body []byte) (Message, error) {
	v, err := readJSON(body)
	if start := bytes.TrimSpace(body); err != nil && start[0] != '{' && start[0] != '[' {
		return Message{}, Errorf(BadRequest, "The request is not JSON").WithHint(
			"This is not Flight SQL; commands are JSON, such as {\"op\":\"Sample\",...}: see docs/wire.md.")
	}
	if err != nil {
		return Message{}, err
	}
	m := Message{value: v}
	m.op, m.value = take(v, "op")
	return m, nil
}

// take returns a field of an object, nil if it is missing or null, and the object without it.
func take(v rawValue, name string) (field, rest rawValue) {
	fields := fieldsIn(v)
	field, given := fields[name]
	if !given {
		return nil, v
	}
	if field.Kind() == 'n' {
		field = nil
	}
	delete(fields, name)
	return field, objectOf(fields)
}

// Op returns the operation that a ticket or command names in its field "op".
func (m Message) Op() (string, error) {
	if m.value.Kind() != '{' {
		return "", Errorf(BadRequest, "The request must be an object, got %s", describe(m.value))
	}
	var op string
	if m.op.Kind() != '"' {
		return "", Errorf(BadRequest, "op is missing").WithHint("Name the operation, such as {\"op\":\"Sample\",...}.")
	}
	return op, decodeJSON(m.op, place{}.field("op"), &op)
}

// Decode sets the defaults of req, decodes the message strictly into it, and validates it. Operation.Call checks the
// field "op".
func (m Message) Decode(req Request) error {
	SetDefaults(req)
	if err := decodeJSON(m.value, place{}, req); err != nil {
		return err
	}
	return Validate(req)
}

// DecodeRequest decodes one JSON object as Message.Decode does.
func DecodeRequest(body []byte, req Request) error {
	v, err := readJSON(body)
	if err != nil {
		return err
	}
	return Message{value: v}.Decode(req)
}

// DecodeStruct decodes one JSON object strictly into the struct that dst points to. Missing fields keep their values.
// It is for structs of other packages, such as the training configuration.
func DecodeStruct(body []byte, dst any) error {
	v, err := readJSON(body)
	if err != nil {
		return err
	}
	return decodeJSON(v, place{}, dst)
}

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// CheckName returns an error unless name is a well-formed name of a model, schedule, basis, data set or run. The error
// names the field. The engine checks for reserved names.
func CheckName(field, name string) error {
	switch {
	case name == "":
		return Errorf(BadRequest, "%s is missing", field)
	case !namePattern.MatchString(name):
		return Errorf(BadRequest, "%s must match [a-z0-9][a-z0-9._-]{0,63}, got %s", field, quoted(name))
	}
	return nil
}

// NotFound returns the error of an unknown name, with the nearest and the first of the names that exist.
func NotFound(code Code, what, name string, there []string) *Error {
	const most = 6
	hint := suggest.DidYouMean(name, there)
	if hint != "" {
		hint = "D" + hint[1:] + " "
	}
	switch {
	case len(there) == 0:
		hint += "There is none so far."
	case len(there) > most:
		hint += "There are: " + strings.Join(there[:most], " ") + " …"
	default:
		hint += "There are: " + strings.Join(there, " ") + "."
	}
	return Errorf(code, "No %s is called %s", what, quoted(name)).WithHint("%s", hint)
}

// oneOf checks that a value is one of the allowed words.
func oneOf(field, value string, allowed ...string) error {
	if wrong := suggest.OneOf(value, allowed); wrong != "" {
		return Errorf(BadRequest, "%s %s", field, wrong)
	}
	return nil
}

// checkCuts checks nested bands. The engine checks that the basis takes them.
func checkCuts(basis string, k int, cuts []int) error {
	switch {
	case cuts == nil:
		return nil
	case len(cuts) == 0:
		return Errorf(BadRequest, "cuts must not be empty")
	case basis == "none":
		return Errorf(BadRequest, "cuts must be left out for basis none")
	case k != 0:
		return Errorf(BadRequest, "k and cuts must not both be given")
	}
	for i, c := range cuts {
		if c < 1 || i > 0 && c <= cuts[i-1] {
			return Errorf(BadRequest, "cuts must increase from 1 on, got %v", cuts)
		}
	}
	return nil
}
