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

// Request is a pointer to a struct that travels as JSON. The tags of its fields, which are those of embedded structs,
// too, say what is left out and what is allowed:
//
//	default:"256"      the value of a field that is left out
//	min:"2" max:"4096" the bounds of a number, or of each of a list; beyond max it is TOO_LARGE
//	above:"0"          a number is positive
//	given:"1"          the least value of a number that may be left out, which is 0 then
//	oneof:"a b"        the words that a text, or each of a list, may be; also the name of one of wordLists
//	name:"new"         a text is well formed as a name
//
// A text whose comment ends in "; required" must not be empty. What tags cannot say, the methods SetDefaults() and
// Validate() error do, if the request has them.
type Request any

// unset marks a number with the tag given that the request left out.
const unset = -1 << 62

// SetDefaults fills what a request leaves out, before it is decoded.
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

// Validate checks a request that has been decoded, by its tags and its method Validate. Its error is an *Error.
func Validate(request Request) error {
	if err := validateFields(request, ""); err != nil {
		return err
	}
	if r, ok := request.(interface{ Validate() error }); ok {
		return r.Validate()
	}
	return nil
}

// validateFields checks the fields of a struct that stands at a path of the request.
func validateFields(request any, path string) error {
	return eachField(reflect.ValueOf(request).Elem(), "", func(f Field, v reflect.Value) error {
		name := join(path, f.Name)
		switch {
		case v.CanInt() && v.Int() == unset:
			v.SetInt(0)
			return nil
		case v.CanInt(), v.CanFloat():
			return validateNumber(name, f.Tag, v)
		case f.Type == reflect.TypeFor[*int]() && !v.IsNil():
			return validateNumber(name, f.Tag, v.Elem())
		case f.Type == reflect.TypeFor[[]int]():
			for i := range v.Len() {
				if err := validateNumber(name, f.Tag, v.Index(i)); err != nil {
					return err
				}
			}
			return nil
		}
		// A request that is part of another, as Sample is of PlanSampler, may leave out what it requires alone.
		missing := v.Kind() == reflect.String && v.Len() == 0
		switch v := v.Interface().(type) {
		case json.RawMessage:
			missing = len(v) == 0
		case ScheduleRef:
			missing = !v.Given()
		}
		if missing && f.Required && f.Group != "Sample" {
			return Errorf(BadRequest, "%s is missing", name)
		}
		if f.Tag.Get("name") != "" {
			return CheckName(name, v.String())
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
				return Errorf(BadRequest, "%s %s", name, wrong)
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
	Key      string   // such as api.Sample.Model: its struct and its name in Go
	Tag      reflect.StructTag

	omitted bool // JSON may leave it out
}

// Fields lists the fields of a struct, or of what a pointer points to, in the order of its declaration; those of
// embedded structs in their place.
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

// eachField calls do with the fields that Fields lists and their values, until one returns an error.
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

// WithWords returns a help that ends in the words that the value may be, unless it names them all.
func WithWords(help string, words []string) string {
	if slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(help, word) }) {
		return strings.TrimPrefix(help+": "+strings.Join(words, ", "), ": ")
	}
	return help
}

// wordLists are the lists that the tag oneof may name in place of words.
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

// Message is the JSON of a request that has been read, strictly, and not been decoded yet.
type Message struct {
	value rawValue // without op
	op    rawValue // its field "op"; nil if there is none
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

// take returns a field of an object, nil if it is absent or null, and the object without it.
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

// Op returns the operation that the message, of a ticket or a command, names in its field "op".
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

// Decode decodes the message into req, strictly (see the package comment), after setting the defaults, and validates
// it. The field "op" is left to Operation.Call.
func (m Message) Decode(req Request) error {
	SetDefaults(req)
	if err := decodeJSON(m.value, place{}, req); err != nil {
		return err
	}
	return Validate(req)
}

// DecodeRequest reads one JSON object as Message.Decode does.
func DecodeRequest(body []byte, req Request) error {
	v, err := readJSON(body)
	if err != nil {
		return err
	}
	return Message{value: v}.Decode(req)
}

// DecodeStruct reads one JSON object strictly into the struct that dst points to, over the values it already holds;
// field names are its json tags. It serves structs that other packages own, such as the training configuration.
func DecodeStruct(body []byte, dst any) error {
	v, err := readJSON(body)
	if err != nil {
		return err
	}
	return decodeJSON(v, place{}, dst)
}

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// CheckName returns an error unless name is well formed as the name of a model, schedule, basis, data set or run; field
// is the request's field that holds it. Which names are reserved, the engine knows.
func CheckName(field, name string) error {
	switch {
	case name == "":
		return Errorf(BadRequest, "%s is missing", field)
	case !namePattern.MatchString(name):
		return Errorf(BadRequest, "%s must match [a-z0-9][a-z0-9._-]{0,63}, got %s", field, quoted(name))
	}
	return nil
}

// NotFound returns the error of a name that nothing has, with the nearest of those there are, and the first of them.
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

// join returns the name of a field within a field of a request's own; path is empty for the request itself.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// oneOf wants one of a few words.
func oneOf(field, value string, allowed ...string) error {
	if wrong := suggest.OneOf(value, allowed); wrong != "" {
		return Errorf(BadRequest, "%s %s", field, wrong)
	}
	return nil
}

// checkCuts checks nested bands. Whether another basis takes any, the engine knows.
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
