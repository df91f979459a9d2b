package api

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// place is where in a request a value stands. It is a chain up to the request itself, which is nil, so that going into
// a value costs the same at any depth and under any key; the path is put together where an error names it.
type place struct {
	parent *place
	key    string // of an object's field
	index  int    // of a list's entry; −1 of a field
}

// field returns the place of an object's field. A dotted key is that of a field within a field.
func (p *place) field(key string) *place { return &place{parent: p, key: key, index: -1} }

// entry returns the place of a list's entries. Its index is set to the entry that is looked at.
func (p *place) entry() *place { return &place{parent: p} }

// plainPath is a path that can stand in a sentence as it is.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9_.\[\]-]{1,80}$`)

// String returns the words for the part of a request that an error is about: its path, quoted and cut short where the
// caller's own keys are no words.
func (p *place) String() string {
	if p == nil {
		return "The request"
	}
	path := p.path()
	if plainPath.MatchString(path) {
		return path
	}
	return describe(path)
}

// path joins the keys and indices. Depth is bounded by maxDepth, and keys are cut to what an error shows.
func (p *place) path() string {
	var parts []string
	for ; p != nil; p = p.parent {
		switch {
		case p.index >= 0:
			parts = append(parts, "["+strconv.Itoa(p.index)+"]")
		case p.parent == nil:
			parts = append(parts, shortened(p.key))
		default:
			parts = append(parts, "."+shortened(p.key))
		}
	}
	slices.Reverse(parts)
	return strings.Join(parts, "")
}
