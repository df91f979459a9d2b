package schedules

import (
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/train/passes"
)

// work is what there is to do for a schedule of kind few, counted in evaluations of the network: it comes in parts that
// are planned before the first, so that progress runs once from nothing to all.
type work struct {
	report      func(done, total int)
	done, total int
	part, begun int // evaluations planned of the part in work, and of those before it
}

// begin ends the part in work, whether or not it was as long as planned, and begins one of n evaluations.
func (w *work) begin(n int) {
	w.begun += w.part
	w.part = n
	w.at(0, 1)
}

// at says that done of total units of the part in work are done.
func (w *work) at(done, total int) {
	w.done = w.begun + int(int64(w.part)*int64(done)/int64(total))
	w.report(w.done, w.total)
}

// add says that n further evaluations of the part in work are done.
func (w *work) add(n int) {
	w.done = min(w.done+n, w.begun+w.part)
	w.report(w.done, w.total)
}

// plan adds up the parts.
func (f *few) plan() {
	f.work.total = f.data.Len()/fewImages + f.firstRound() + f.finals() + f.heldBack()
	if f.anisotropic() {
		f.work.total += passes.DefaultPoints*passes.DefaultSamples + f.fits()
	}
}

// first is the number of samples that every try is measured on.
func (f *few) first() int { return min(f.req.Samples, max(fewFirst, f.req.Samples/8)) }

// second is the number of samples that the better ones are measured on next.
func (f *few) second() int { return min(f.req.Samples, 2*f.first()) }

// firstRound is the most evaluations that all tries take which need no fit.
func (f *few) firstRound() int {
	tries := 2*len(f.isotropicSolvers()) + fewPerLevel*(fewHalvings+1)
	if f.anisotropic() {
		tries += fewHalvings
	}
	return tries * f.first() * f.req.NFE
}

// fits is the most evaluations that the fits and the tries of their samplers take.
func (f *few) fits() int {
	if !f.tried(solver.FittedName) || f.trajectories() < fewLeastFit {
		return 0
	}
	return fewFits * f.req.NFE * (2*f.trajectories()*(substeps+(f.req.NFE+1)/2) + f.first())
}

// finals is the most evaluations of the tries that are measured on more samples.
func (f *few) finals() int {
	next, all := f.second()-f.first(), f.req.Samples-f.second()
	return ((fewNext+2*len(f.isotropicSolvers()))*next + (fewFinalists+fewRivals)*all) * f.req.NFE
}

// heldBack is the number of evaluations for what is reported of the chosen and of the one that it is against.
func (f *few) heldBack() int { return 2*f.req.Samples*f.req.NFE + fewLatents*fewConverged }
