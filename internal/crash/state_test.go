package crash

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// state is the contents of a folder as its engine gives them: by kind and name, a word that stands for the contents.
type state map[string]string

// stateOf reads everything that an engine has. Damage is an error.
func stateOf(ctx context.Context, e *engine.Engine) (state, error) {
	out := state{}
	for _, kind := range []struct{ list, key, read, body string }{
		{"ListDatasets", "datasets", "Dataset", `{"dataset":%q}`},
		{"ListSchedules", "schedules", "EvaluateSchedule", `{"schedule":%q,"knots":true}`},
		{"ListBases", "bases", "Basis", `{"basis":%q}`},
		{"ListModels", "models", "", ""},
		{"ListRuns", "runs", "", ""},
	} {
		reply, err := ask(ctx, e, kind.list, "")
		if err != nil {
			return nil, err
		}
		for _, entry := range reply[kind.key].([]any) {
			info := entry.(map[string]any)
			name := info["name"].(string)
			if damage := info["damage"]; damage != nil {
				return nil, fmt.Errorf("%s/%s is damaged: %v", kind.key, name, damage)
			}
			word, err := wordOf(ctx, e, kind.read, kind.body, name, info)
			if err != nil {
				return nil, fmt.Errorf("%s/%s: %w", kind.key, name, err)
			}
			out[kind.key+"/"+name] = word
		}
	}
	return out, nil
}

// wordOf returns a word that is different if the contents are.
func wordOf(ctx context.Context, e *engine.Engine, op, body, name string, info map[string]any) (string, error) {
	if op != "" {
		sum := sha256.New()
		err := read(ctx, e, op, fmt.Sprintf(body, name), func(b api.Batch) { fmt.Fprint(sum, b.Rows, b.Cols) })
		return fmt.Sprintf("%x", sum.Sum(nil)), err
	}
	if step, ok := info["step"]; ok { // a run; its model is what it has learned, and can be read
		described, err := ask(ctx, e, "GetRun", fmt.Sprintf(`{"run":%q}`, name))
		if err != nil {
			return "", err
		}
		config, err := json.Marshal(described["config"])
		return fmt.Sprintf("%v at step %v of %x", info["state"], step, sha256.Sum256(config)), err
	}
	weights := info["hash"]
	if weights == nil {
		weights = info["weights"]
	}
	_, err := ask(ctx, e, "DescribeModel", fmt.Sprintf(`{"model":%q}`, name))
	return fmt.Sprint(weights), err
}

// files lists the entries of the folders, two deep, and all leftovers.
func files(dir string) (list []string, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if strings.HasPrefix(entry.Name(), atomicdir.Prefix) {
			list = append(list, rel+" (left over)")
		}
		if depth := strings.Count(rel, string(filepath.Separator)); depth == 1 {
			list = append(list, rel)
		}
		return nil
	})
	slices.Sort(list)
	return list, err
}

// differs describes the difference between two states.
func (s state) differs(from state) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if have, ok := from[name]; !ok {
			words = append(words, name+" is there")
		} else if have != s[name] {
			words = append(words, name+" is "+s[name]+", not "+have)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if _, ok := s[name]; !ok {
			words = append(words, name+" is not there")
		}
	}
	return strings.Join(words, "; ")
}

// between returns s in which a run of the same configuration as before, at a step between those before and after, is as
// after.
func (s state) between(before, after state) state {
	out := maps.Clone(s)
	for name, word := range s {
		var now, least, most int
		var config, same string
		_, err := fmt.Sscanf(stepOf(word), "%d of %s", &now, &config)
		if err != nil || stepOf(before[name]) == "" || stepOf(after[name]) == "" {
			continue
		}
		_, _ = fmt.Sscanf(stepOf(before[name]), "%d of %s", &least, &same)
		_, _ = fmt.Sscanf(stepOf(after[name]), "%d", &most)
		if config == same && least <= now && now <= most {
			out[name] = after[name]
		}
	}
	return out
}

// stepOf returns what a run's word says after its state.
func stepOf(word string) string {
	_, step, _ := strings.Cut(word, " at step ")
	return step
}
