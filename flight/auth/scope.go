package auth

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
)

// ParseScopes reads a list such as "read,sample".
func ParseScopes(text string) ([]api.Scope, error) {
	var list []api.Scope
	for word := range strings.SplitSeq(text, ",") {
		s := api.Scope(word)
		if !slices.Contains(api.Scopes, s) {
			return nil, fmt.Errorf("auth: %q is not a scope: read, sample, train or admin", word)
		}
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list, nil
}
