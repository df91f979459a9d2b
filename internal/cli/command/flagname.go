package command

import (
	"errors"
	"regexp"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
)

// fields matches the names of fields at the head of a refusal, such as `steps and nfe` before `must not both be given`,
// and their ends: `family.k must be positive`, `kimg is missing`.
var fields = regexp.MustCompile(`^(?:.*: )?` + // where: a file, a row
	`([\w.\[\]]+(?:(?:, | and | × )[\w.\[\]]+)*)` +
	` (?:must|is missing|are both missing)`)

var field = regexp.MustCompile(`(\w+)((?:\.\w+|\[\d+\])*)`)

// NameFlag names the fields of a request that the server refuses as the flags that they were given by, or, where they
// are missing, by which they can be given.
func (e Env) NameFlag(err error) error {
	var refused *api.Error
	if !errors.As(err, &refused) {
		return err
	}
	at := fields.FindStringSubmatchIndex(refused.Message)
	if at == nil {
		return err
	}
	head, list, rest := refused.Message[:at[2]], refused.Message[at[2]:at[3]], refused.Message[at[3]:]
	missing := strings.HasPrefix(rest, " is missing") || strings.HasPrefix(rest, " are both missing")
	named := *refused
	named.Message = head + field.ReplaceAllStringFunc(list, func(path string) string {
		parts := field.FindStringSubmatch(path)
		if !e.Has(parts[1]) {
			return path
		}
		v := e.Get(parts[1])
		switch {
		case !strings.HasPrefix(v.Source, "flag ") && !(missing && !v.Given):
			return path
		case parts[2] == "":
			return "--" + v.Flag()
		}
		return strings.TrimPrefix(parts[2], ".") + " of --" + v.Flag()
	}) + rest
	return &named
}
