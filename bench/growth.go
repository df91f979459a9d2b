package bench

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func newGrowth() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "growth",
		Short: "Measure how time and memory grow with pixels, batch, evaluations, classes, knots, subspaces and data",
		Long: `Growth sends requests to a server in this process and changes one size at a time: pixels of an image, images of
a batch, evaluations, classes with a path each, knots of a path, subspaces, images of a data set. Every size has
processes of its own, all sizes in turn in every round; the first round compiles and is not counted. Of a curve it
reports the exponent p of seconds ~ size^p, fitted to the logarithms of processor time, and that of memory: the most
that was resident, less what was when the process began. TOP is the exponent between the last two sizes. See
bench/docs/growth.md.`,
		Example: `  anisoflight-bench growth --csv growth.csv
  anisoflight-bench growth --axes classes,knots --rounds 5`,
	}
	f := cmd.Flags()
	names := f.StringSlice("axes", axisNames(), "`list` of sizes to change")
	rounds := 3
	positive(f, &rounds, "rounds", rounds, "`number` of rounds")
	file := f.String("csv", "", "`file` for every measurement")
	point := f.String("point", "", "measure one size")
	_ = f.MarkHidden("point")
	return measuring(cmd, func(ctx context.Context) (report, error) {
		if *point != "" {
			costs, err := measurePoint(ctx, *point)
			if err != nil {
				return nil, err
			}
			return nil, json.NewEncoder(cmd.OutOrStdout()).Encode(costs)
		}
		r, err := measureGrowth(ctx, *names, rounds, progress(cmd))
		if err != nil || *file == "" {
			return r, err
		}
		return r, r.writeCSV(*file)
	})
}

type growthReport struct {
	Rounds int     `json:"rounds"`
	Load   float64 `json:"load"` // the load average at the end
	Curves []curve `json:"curves"`
}

// curve is a request's costs by size.
type curve struct {
	Axis    string      `json:"axis"`
	Request string      `json:"request"`
	Points  []sizeCosts `json:"points"`
	CPU     growth      `json:"cpu_growth"`
	Memory  growth      `json:"memory_growth"`
	Most    float64     `json:"most"` // what either exponent may be
}

type sizeCosts struct {
	Size  int    `json:"size"`
	Costs []cost `json:"costs"` // by round
}

// growth are exponents of a power of the size.
type growth struct {
	All float64 `json:"all"` // fitted to all sizes
	Top float64 `json:"top"` // between the last two
}

// measureGrowth starts a process for each size, round by round.
func measureGrowth(
	ctx context.Context, names []string, rounds int, progress func(done, total int),
) (*growthReport, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var chosen []axis
	total := 0
	for _, name := range names {
		a, err := axisNamed(name)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, a)
		total += (rounds + 1) * len(a.sizes)
	}
	dir, err := os.MkdirTemp("", "anisoflight-programs-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r, done := &growthReport{Rounds: rounds}, 0
	for _, a := range chosen {
		curves := make([]curve, len(a.requests))
		for i, request := range a.requests {
			curves[i] = curve{Axis: a.name, Request: request, Most: a.most, Points: make([]sizeCosts, len(a.sizes))}
		}
		for round := range rounds + 1 {
			for s, size := range a.sizes {
				costs, err := launchPoint(ctx, exe, dir, a.name, size)
				if err != nil {
					return nil, fmt.Errorf("%s %d: %w", a.name, size, err)
				}
				done++
				progress(done, total)
				for i := range curves {
					p := &curves[i].Points[s]
					p.Size = size
					if round > 0 {
						p.Costs = append(p.Costs, costs[curves[i].Request])
					}
				}
			}
		}
		for i := range curves {
			curves[i].fit()
		}
		r.Curves = append(r.Curves, curves...)
	}
	r.Load = loadAverage()
	return r, nil
}

func launchPoint(ctx context.Context, exe, dir, name string, size int) (map[string]cost, error) {
	cmd := exec.CommandContext(ctx, exe, "growth", "--point", name+" "+strconv.Itoa(size))
	cmd.Env = append(os.Environ(), "ANISOFLIGHT_PROGRAM_CACHE="+dir)
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(string(failed.Stderr)))
	}
	if err != nil {
		return nil, err
	}
	var costs map[string]cost
	return costs, json.Unmarshal(out, &costs)
}

// median returns the median of one of a size's costs.
func (s sizeCosts) median(of func(cost) float64) float64 {
	var all []float64
	for _, c := range s.Costs {
		all = append(all, of(c))
	}
	return quartilesOf(all).Median
}

func (c *curve) fit() {
	var sizes, cpu, peak []float64
	for _, p := range c.Points {
		sizes = append(sizes, float64(p.Size))
		cpu = append(cpu, p.median(func(c cost) float64 { return c.CPU }))
		peak = append(peak, p.median(func(c cost) float64 { return c.Peak }))
	}
	last := len(sizes) - 2
	c.CPU = growth{exponent(sizes, cpu), exponent(sizes[last:], cpu[last:])}
	c.Memory = growth{exponent(sizes, peak), exponent(sizes[last:], peak[last:])}
}

// exponent returns p of y ~ x^p by least squares of the logarithms.
func exponent(x, y []float64) float64 {
	var mx, my float64
	for i := range x {
		mx, my = mx+math.Log(x[i])/float64(len(x)), my+math.Log(y[i])/float64(len(x))
	}
	var xy, xx float64
	for i := range x {
		d := math.Log(x[i]) - mx
		xy, xx = xy+d*(math.Log(y[i])-my), xx+d*d
	}
	return xy / xx
}

func (r *growthReport) table(t *tabwriter.Writer) {
	fmt.Fprintf(t, "%d rounds, load average %.1f at the end\n", r.Rounds, r.Load)
	fmt.Fprintln(t, "SIZE\tREQUEST\tFROM–TO\tPROCESSOR S\tGROWTH\tTOP\tMEMORY MIB\tGROWTH\tTOP\tAT MOST")
	for _, c := range r.Curves {
		from, to := c.Points[0], c.Points[len(c.Points)-1]
		cpu := func(p sizeCosts) float64 { return p.median(func(c cost) float64 { return c.CPU }) }
		peak := func(p sizeCosts) float64 { return p.median(func(c cost) float64 { return c.Peak }) / (1 << 20) }
		fmt.Fprintf(t, "%s\t%s\t%d–%d\t%.3g–%.3g\t%.2f\t%.2f\t%.0f–%.0f\t%.2f\t%.2f\t%.0f\n", c.Axis, c.Request,
			from.Size, to.Size, cpu(from), cpu(to), c.CPU.All, c.CPU.Top, peak(from), peak(to), c.Memory.All, c.Memory.Top,
			c.Most)
	}
}

// writeCSV writes one line per curve, size and round.
func (r *growthReport) writeCSV(path string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w := csv.NewWriter(file)
	lines := [][]string{{"axis", "request", "size", "round", "wall_seconds", "cpu_seconds", "peak_bytes"}}
	for _, c := range r.Curves {
		for _, p := range c.Points {
			for round, k := range p.Costs {
				lines = append(lines, []string{
					c.Axis, c.Request, strconv.Itoa(p.Size), strconv.Itoa(round), fmt.Sprintf("%.6f", k.Wall),
					fmt.Sprintf("%.6f", k.CPU), fmt.Sprintf("%.0f", k.Peak),
				})
			}
		}
	}
	return w.WriteAll(lines)
}

// loadAverage returns the machine's over the last minute; 0 where it does not tell.
func loadAverage() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	load, _ := strconv.ParseFloat(first, 64)
	return load
}
