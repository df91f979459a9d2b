package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/anisoflight/anisoflight/internal/base/folderlock"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
	"github.com/anisoflight/anisoflight/internal/engine/fsck"
)

var fsckSpec = command.Spec{
	Use:   "fsck",
	Short: "Check every byte of a data folder, and repair what can be repaired",
	Long: `Fsck compares each file of a data folder's models, schedules, bases, data sets and
runs with its stored SHA-256, and reads it as a server would. It changes nothing, and
a server may work on the folder meanwhile.

With --repair it removes leftovers of crashes, writes missing manifests, and replaces
the damaged state of a run by the previous one. It reports each repair and deletes
nothing else. No server may work on the folder.

The exit status is 1 if anything is damaged.`,
	Example: `  anisoflight fsck --data data
  anisoflight fsck --data data --repair
  anisoflight fsck --json | jq '.findings[] | select(.state == "damaged")'`,
	Options: []command.Option{
		connect.DataOption,
		{Name: "repair", Kind: command.Toggle, Usage: "repair what can be repaired without loss"},
	},
	JSON: true,
	Run:  runFsck,
}

// inspection is what fsck prints as JSON.
type inspection struct {
	Findings []fsck.Finding     `json:"findings"`
	Count    map[fsck.State]int `json:"count"` // number of findings by state
	Bytes    int64              `json:"bytes"` // number of bytes read
}

func runFsck(ctx context.Context, e command.Env) (err error) {
	dir, repair := e.Text("data"), e.Toggle("repair")
	if !command.Exists(dir) {
		return fmt.Errorf("there is no data folder %q", dir)
	}
	if repair {
		lock, err := folderlock.Acquire(dir, "anisoflight fsck")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, lock.Release()) }()
	}
	report := inspection{Findings: []fsck.Finding{}, Count: map[fsck.State]int{}}
	progress := command.NewProgress(e.Err, e.Log, "check")
	err = fsck.Check(ctx, dir, repair, func(f fsck.Finding) {
		report.Findings = append(report.Findings, f)
		report.Count[f.State]++
		report.Bytes += f.Bytes
		progress.Set(int64(len(report.Findings)), -1, f.Path)
	})
	progress.Close()
	if err != nil {
		return err
	}
	err = e.Show(report, report.print)
	if n := report.Count[fsck.Damaged]; err == nil && n > 0 {
		err = fmt.Errorf("%d damaged; replace each by an intact copy, or delete it", n)
	}
	return err
}

func (r inspection) print(w io.Writer) error {
	t := command.NewTable(w, "PATH\tSTATE\tMIB\tWHAT")
	for _, f := range r.Findings {
		faults := strings.Join(f.Faults, "; ")
		if f.Repaired != "" {
			faults = strings.TrimPrefix(faults+"; "+f.Repaired, "; ")
		}
		fmt.Fprintf(t, "%s\t%s\t%.1f\t%s\n", f.Path, f.State, float64(f.Bytes)/(1<<20), faults)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d ok, %d unverified, %d leftover, %d damaged; %.1f MiB\n", r.Count[fsck.OK],
		r.Count[fsck.Unverified], r.Count[fsck.Leftover], r.Count[fsck.Damaged], float64(r.Bytes)/(1<<20))
	return err
}
