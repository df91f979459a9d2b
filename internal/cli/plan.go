package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// fewRequest lists the fields of MakePlan.
var fewRequest = connect.Fields(new(api.MakePlan))

var fewSpec = command.Spec{
	Use:   "few",
	Short: "Find the best sampler of few evaluations for a model",
	Long: `Few tries samplers on a model and returns the best as a plan: numbers that any program
can follow. With a data set it compares samples with its images by three Fréchet
distances that need no trained network: of low frequencies and, with half of the weight,
of differences between neighbouring pixels and of responses of random filters. Samplers
may then start from the data's own Gaussian. Without a data set it compares samples with
converged ones from the same latents. If the budget suffices, levels and coefficients are
also learned through the network, unless --learn=false. If the best is not clearly better
than a plain solver, on new samples, the plan is that of the plain solver. An interrupt
(Ctrl-C) ends the search with the best so far; a second one leaves it.

The plan goes to the file of --out, to the server under --name, or both.`,
	Example: `  anisoflight few --model digits --dataset digits --nfe 5 --out five.json
  anisoflight sample --model digits --plan five.json`,
	Options: slices.Concat(fewRequest, []command.Option{
		{Name: "out", Usage: "`file` of JSON to write the plan to"},
	}, connect.FolderOptions, connect.GPUOptions),
	Run: runFew,
}

func runFew(ctx context.Context, e command.Env) error {
	out := e.Text("out")
	if out == "" && e.Text("name") == "" {
		return command.Usagef(e.Cmd, "--out or --name is missing: the plan must go somewhere")
	}
	if out != "" {
		if err := command.CheckOut(out); err != nil {
			return err
		}
	}
	return connect.WithServer(ctx, e, func(c *client.Client) error {
		p := command.NewProgress(e.Err, e.Log, "trying")
		defer p.Close()
		reply, err := searched(ctx, c, e.Request(fewRequest), func(m api.Meta) { connect.ShowMeta(p, m) })
		if err != nil {
			return err
		}
		var plan api.Plan
		if err := json.Unmarshal(reply, &plan); err != nil {
			return err
		}
		if out != "" {
			err = command.WriteFile(out, func(w io.Writer) error { return command.PrintJSON(w, reply) })
		}
		if err != nil {
			return err
		}
		var report api.Few
		if text, err := json.Marshal(plan.Info); err == nil {
			_ = json.Unmarshal(text, &report) // it is what the server sent
		}
		connect.Notes(e.Err, plan.Notes)
		fmt.Fprintln(e.Out, report.Summary)
		_, err = fmt.Fprintf(e.Out, "few: %d evaluations in %d steps\n", plan.NFE, plan.Steps)
		return err
	})
}

// searched returns the plan of a search. An interrupt ends it with the best plan so far.
func searched(ctx context.Context, c *client.Client, request api.Meta, show func(api.Meta)) (json.RawMessage, error) {
	var search atomic.Value // its token, once it is known
	working, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	defer context.AfterFunc(ctx, func() {
		token, known := search.Load().(string)
		if !known || c.EndSearch(working, token) != nil {
			leave()
		}
	})()
	return c.Action(working, "MakePlan", request, func(m api.Meta) {
		if token, ok := m["search"].(string); ok {
			search.Store(token)
		}
		show(m)
	})
}

var planGroup = command.Group{
	Use:   "plan",
	Short: "List and delete stored plans",
	Long: `Plan lists and deletes the samplers that the server stores as plans. The command few
makes them, and sample takes them.`,
	Example: `  anisoflight plan list
  anisoflight plan delete --name five`,
	Specs: []command.Spec{
		connect.ListSpec("stored plans", "plan", (*client.Client).ListPlans, "NAME\tEVALUATIONS\tSTEPS\tSOLVER\tSTART",
			func(p api.PlanInfo) string {
				start := api.StartStandard
				if p.Start != nil {
					start = api.StartMatched
				}
				return fmt.Sprintf("%s\t%d\t%d\t%s\t%s", p.Name, p.NFE, p.Steps, p.Solver, start)
			}),
		{
			Use:     "delete",
			Short:   "Delete a stored plan",
			Example: "  anisoflight plan delete --name five",
			Options: slices.Concat([]command.Option{{Name: "name", Required: true, Usage: "`name` of the plan"}},
				connect.FolderOptions),
			Run: func(ctx context.Context, e command.Env) error {
				return connect.WithServer(ctx, e, func(c *client.Client) error { return c.DeletePlan(ctx, e.Text("name")) })
			},
		},
	},
}

// planOf returns the plan of a flag: that of a file, whose name ends in .json, or the name of a stored one. A file that
// Python's Plan.save wrote has its start and the vectors of its basis next to it.
func planOf(flag string) (any, error) {
	if !strings.HasSuffix(flag, ".json") {
		return flag, nil
	}
	text, err := os.ReadFile(flag)
	if err != nil {
		return nil, err
	}
	var plan map[string]any
	if err := json.Unmarshal(text, &plan); err != nil {
		return nil, fmt.Errorf("%s is not the JSON of a plan: %w", flag, err)
	}
	for field, name := range map[string]string{"law": checkpoint.StartFile.Name(), "vectors": checkpoint.BasisFile} {
		if _, inside := plan[field]; inside || field == "law" && plan["start"] == nil {
			continue
		}
		file, err := os.ReadFile(filepath.Join(filepath.Dir(flag), name))
		switch {
		case err == nil:
			plan[field] = file
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return plan, nil
}
