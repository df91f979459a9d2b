// Package processestest joins goroutines as if each were a process, for tests.
package processestest

import (
	"context"
	"errors"
	"sync"

	"github.com/anisoflight/anisoflight/kernels/processes"
)

// errDead is what the others are told of one that was killed.
var errDead = errors.New("a process was killed")

// Job is processes that are joined.
type Job struct {
	mail [][]chan []byte // [from][to]
	dead chan struct{}
	once sync.Once
}

// New joins n processes.
func New(n int) *Job {
	j := &Job{dead: make(chan struct{})}
	for range n {
		var to []chan []byte
		for range n {
			to = append(to, make(chan []byte, 1))
		}
		j.mail = append(j.mail, to)
	}
	return j
}

// World returns the world as one of the processes sees it.
func (j *Job) World(rank int) *processes.World { return processes.New(link{j, rank}) }

// Kill ends the job as the death of one of its processes does.
func (j *Job) Kill() { j.once.Do(func() { close(j.dead) }) }

// link is one process's.
type link struct {
	*Job
	rank int
}

func (l link) Place() (rank, size int) { return l.rank, len(l.mail) }

func (l link) Exchange(ctx context.Context, out, in []byte) error {
	block := len(out) / len(l.mail)
	for k := range l.mail {
		select {
		case l.mail[l.rank][k] <- append([]byte(nil), out[k*block:(k+1)*block]...):
		case <-l.dead:
			return errDead
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for k := range l.mail {
		select {
		case b := <-l.mail[k][l.rank]:
			if len(b) != block {
				return errors.New("the processes are at different exchanges")
			}
			copy(in[k*block:], b)
		case <-l.dead:
			return errDead
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
