package fsck

import (
	"os"

	"github.com/anisoflight/anisoflight/internal/engine/runs"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// run checks the status and the states of a run.
func (c *checker) run(path string) error {
	if err := c.leftovers(path); err != nil {
		return err
	}
	status := Finding{Path: c.below(runs.StatusPath(path)), State: OK, Bytes: atomicdir.Bytes(runs.StatusPath(path))}
	fault := runs.CheckStatus(path)
	if _, err := os.Lstat(path); err != nil { // it went away meanwhile
		return nil
	}
	if err := c.states(path); err != nil {
		return err
	}
	status.blame(fault)
	if c.repair && fault != nil && runs.MendStatus(path) == nil {
		status.State, status.Repaired = OK, "made again from the state: the run is paused there"
	}
	c.found(status)
	return nil
}

// states checks the states of a run. If only the last is damaged, a repair replaces it by the previous one.
func (c *checker) states(run string) error {
	load := readable(checkpoint.LoadRun)
	last, previous := runs.StatePath(run), runs.PreviousPath(run)
	state, err := c.folder(last, load)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(previous); err != nil { // there has been one state only
		c.found(state)
		return nil
	}
	previousState, err := c.folder(previous, load)
	if err != nil {
		return err
	}
	if state.State == Damaged && previousState.State != Damaged && c.repair {
		if _, err := runs.FallBack(run); err != nil {
			return err
		}
		state.Path, previousState.Path = previousState.Path, state.Path
		previousState.Repaired = "the state before took the place of the damaged one: the run goes on from it"
		state.Repaired = "the damaged state is here until the next is stored"
		state, previousState = previousState, state
	}
	c.found(state)
	if _, err := os.Lstat(previous); err == nil { // else it took the place of a state that was gone
		c.found(previousState)
	}
	return nil
}
