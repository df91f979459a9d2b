package search

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/internal/testing/ensembletest"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/frechet"
	"github.com/anisoflight/anisoflight/schedule/start"
)

// none is the label of everything.
func none(int, uint64) int32 { return -1 }

// smooth returns a mixture on images of 4×4 pixels, and what is known of images drawn from it, without responses, which
// take most of the time of a search on such a network.
func smooth(t *testing.T) (*ensembletest.Mixture, *Images) {
	t.Helper()
	m := ensembletest.Smooth(4, 3)
	images, err := MeasureImages(t.Context(), m.Data(t, 200), true, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	images.References, images.Held = images.References[:2], images.Held[:2]
	return m, images
}

// settings are those of a search for 3 evaluations among some solvers.
func settings(samples int, solvers ...string) Settings {
	return Settings{
		NFE: 3, Solvers: solvers, Samples: samples, G0: schedule.DefaultG0, T: schedule.DefaultT, Label: none,
		Learn: new(bool),
	}
}

func few(t *testing.T, m sampler.Ensemble, images *Images, set Settings) *FewResult {
	t.Helper()
	found, err := Few(t.Context(), m, images, set)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// scores are those of the tries, in their order.
func scores(found *FewResult) (out []float64) {
	for _, c := range found.Tries {
		out = append(out, c.score())
	}
	return out
}

// The choice is the first of the tries, which are ranked; it starts from the law of the images if that is how it was
// tried, and is measured on latents of its own beside the best from noise alone.
func TestFewChoosesTheBestTry(t *testing.T) {
	m, images := smooth(t)
	set := settings(64, "ipndm", "dpmpp2m")
	found := few(t, m, images, set)
	if !slices.IsSorted(scores(found)) || !slices.Contains(champions(found.Tries), found.Chosen) {
		t.Errorf("%v chosen of %v", found.Chosen, scores(found))
	}
	against := found.Against
	if against == found.Chosen || against.HeldOut == nil {
		t.Errorf("against %v", against)
	}
	if got := found.Start; found.Chosen.Matched && got != images.Start || !found.Chosen.Matched && got != nil {
		t.Error("the start is not the chosen one's")
	}
	if found.Chosen.HeldOut == nil || against.HeldOut == nil || !(found.Chosen.ODEError > 0) {
		t.Errorf("nothing is held back: %v, %v", found.Chosen, against)
	}
	for _, c := range found.Tries {
		if c.Plan.NFE != 3 || c.Samples != 64 || !(c.score() > 0) || math.IsInf(c.score(), 1) {
			t.Errorf("try %v of score %g", c, c.score())
		}
	}
	if again := few(t, m, images, set); !slices.Equal(scores(again), scores(found)) {
		t.Error("the same search has found something else")
	}
	checkTries(t, found)
}

// What a search among images will take is told within a factor of 1.5, also if the races are the least of it.
func TestFewTellsItsCost(t *testing.T) {
	m, images := smooth(t)
	for samples, solvers := range map[int][]string{64: {"ipndm"}, 256: {"ipndm", "dpmpp2m", "unipc"}} {
		set := settings(samples, solvers...)
		set.Learn = nil
		planned, made := 0, statisticsEvaluations
		set.Planned = func(n int) { planned = n }
		few(t, evaluated{m, &made}, images, set)
		if made > planned*3/2 || planned > made*3/2 {
			t.Errorf("%d samples of %v: %d evaluations were planned and %d made", samples, solvers, planned, made)
		}
	}
}

// evaluated counts the evaluations of plans.
type evaluated struct {
	sampler.Ensemble
	made *int
}

func (e evaluated) Follow(ctx context.Context, t sampler.Trajectories, into ...sampler.Reducer) error {
	*e.made += len(t.Labels) * t.Plan.NFE
	return e.Ensemble.Follow(ctx, t, into...)
}

// checkTries: every solver of all frequencies alike is tried on one of EDM's rules, from noise at four levels, with an
// analytical first step at three, and from the law at five, where one on the Gaussian's levels is tried; the best of
// these on all rules; solvers by frequency from both, and fitted ones around local.
func checkTries(t *testing.T, found *FewResult) {
	t.Helper()
	type try struct {
		solver              string
		matched, analytical bool
		sigma               float64
	}
	tries, gaussian, counts := map[try]int{}, map[float64]int{}, map[string]int{}
	for _, c := range found.Tries {
		counts[c.Solver]++
		if c.Levels == "gaussian" && c.Matched {
			gaussian[c.SigmaMax]++
		} else {
			tries[try{c.Solver, c.Matched, c.Analytical > 0, cmp.Or(c.Analytical, c.SigmaMax)}]++
		}
	}
	onAll := 0
	for tried, n := range tries {
		if tried.solver == localName || tried.solver == fittedName || n == 1 {
			continue
		}
		if onAll++; n != len(rules) {
			t.Errorf("%v is on %d rules", tried, n)
		}
	}
	if onAll < refined || onAll > refined+refinedAnalytical { // those with an analytical first step may be among them
		t.Errorf("%d candidates are on all rules", onAll)
	}
	for halving := range 7 {
		sigma := 80 / math.Pow(2, float64(halving))
		for _, name := range []string{"ipndm", "dpmpp2m"} {
			if n := tries[try{name, true, false, sigma}]; (n > 0) != (halving >= firstMatched) {
				t.Errorf("%d tries of %s from the law at σ = %g", n, name, sigma)
			}
			if n := tries[try{name, false, false, sigma}]; (n > 0) != (halving < 4) {
				t.Errorf("%d tries of %s from noise at σ = %g", n, name, sigma)
			}
			if n := tries[try{name, false, true, sigma}]; (n > 0) != (halving < analyticalHalvings) {
				t.Errorf("%d tries of %s with an analytical first step at σ = %g", n, name, sigma)
			}
		}
		if n := gaussian[sigma]; (n == 1) != (halving >= firstMatched) {
			t.Errorf("%d tries on the Gaussian's levels from the law at σ = %g", n, sigma)
		}
		if n := tries[try{localName, true, false, sigma}]; n != 1 && halving > 1 && halving < 5 {
			t.Errorf("%d tries of local from the law at σ = %g", n, sigma)
		}
	}
	if counts[localName] != 4 || counts[fittedName] < 1 || counts[fittedName] > maxFits+1 || len(counts) > 4 {
		t.Errorf("tried %v", counts)
	}
}

// checkRounds: tries that are clearly worse leave early and stand last, with the number of samples that they were
// measured on. The best of each family stays to the end.
func checkRounds(t *testing.T, found *FewResult) {
	t.Helper()
	counts := map[int]int{}
	for i, c := range found.Tries {
		counts[c.Samples]++
		if i > 0 && c.Samples > found.Tries[i-1].Samples {
			t.Errorf("try %d saw %d samples, the one before %d", i, c.Samples, found.Tries[i-1].Samples)
		}
	}
	whole, more := counts[512], counts[128]+counts[512]
	if len(found.Tries) < 25 || whole < 3 || whole > finalCandidates+families || more > secondRoundCandidates+families ||
		counts[64]+more != len(found.Tries) {
		t.Errorf("%d tries by their samples: %v", len(found.Tries), counts)
	}
	for _, c := range champions(found.Tries) {
		if c.Samples != 512 {
			t.Errorf("the best of family %d, %v, saw %d samples", c.family(), c, c.Samples)
		}
	}
}

// followed is what an ensemble was asked for in each part of a search.
type followed struct {
	sampler.Ensemble
	part  string
	seeds map[string][][2]uint64 // from … to − 1, by part
}

func (f *followed) Follow(ctx context.Context, t sampler.Trajectories, into ...sampler.Reducer) error {
	f.seeds[f.part] = append(f.seeds[f.part], [2]uint64{t.Seed, t.Seed + uint64(len(t.Labels))})
	return f.Ensemble.Follow(ctx, t, into...)
}

// Progress runs once from nothing to all by parts that have names; latents that the choice is judged on, those of fits
// and those of samples, whose seeds are 0, 1, 2, …, are never the same as those that it was made by.
func TestFewHasPartsAndSeedsOfItsOwn(t *testing.T) {
	m, images := smooth(t)
	f := &followed{Ensemble: m, seeds: map[string][][2]uint64{}}
	set := settings(512, "ipndm", "dpmpp2m")
	var parts []string
	last := 0
	set.Progress = NewProgress(func(part string, done, total int) {
		if f.part = part; len(parts) == 0 || parts[len(parts)-1] != part {
			parts = append(parts, part)
		}
		if done < last || done > total || total != 1000 {
			t.Errorf("%s: %d of %d after %d", part, done, total, last)
		}
		last = done
	})
	checkRounds(t, few(t, f, images, set))
	names := slices.Compact(slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return p == "fit" }))
	want := []string{"statistics", "levels", "first round", "last rounds", "held back", "error"}
	if !slices.Equal(names, want) || !slices.Contains(parts, "fit") || last < 1000-ShareOfImages-shareOfFits {
		t.Errorf("parts %v end at %d", parts, last)
	}
	for _, a := range append(f.seeds["held back"], f.seeds["fit"]...) {
		for _, b := range append(f.seeds["first round"], f.seeds["last rounds"]...) {
			if a[0] < b[1] && b[0] < a[1] {
				t.Errorf("seeds %v are used twice, as %v", a, b)
			}
		}
	}
}

// The end of the context ends the work at once.
func TestFewEndsWithItsContext(t *testing.T) {
	m, images := smooth(t)
	for _, at := range []string{"statistics", "levels", "first round", "fit", "held back"} {
		ctx, cancel := context.WithCancel(t.Context())
		set := settings(64, "ipndm")
		set.Progress = NewProgress(func(part string, _, _ int) {
			if part == at {
				cancel()
			}
		})
		if _, err := Few(ctx, m, images, set); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled at %s: %v", at, err)
		}
	}
}

// The seeds of a search or a fit never meet those from 0 on, with which its choice is measured.
func TestSearchSeedsAreNotThoseOfSamples(t *testing.T) {
	const reach = 1 << 40 // seeds from 0 on, and of each search
	var starts []uint64
	for _, seed := range []uint64{0, 1, 2, 42, 1234, 1 << 20} {
		start := firstSeed(seed)
		if start < reach || start > 1<<64-1-reach {
			t.Errorf("seed %d begins at %d", seed, start)
		}
		for _, other := range starts {
			if start-other < reach || other-start < reach {
				t.Errorf("seeds from %d and from %d meet", start, other)
			}
		}
		starts = append(starts, start)
	}
}

// spoiled is an ensemble whose samples are not finite where a condition on the trajectories holds.
type spoiled struct {
	sampler.Ensemble
	where func(t sampler.Trajectories) bool
}

type notANumber struct{ sampler.Reducer }

func (n notANumber) Add(stage int, x, denoised []float32) {
	x = slices.Clone(x)
	x[0] = float32(math.NaN())
	n.Reducer.Add(stage, x, denoised)
}

func (s *spoiled) Follow(ctx context.Context, t sampler.Trajectories, into ...sampler.Reducer) error {
	if s.where(t) {
		into = slices.Clone(into)
		for i, r := range into {
			into[i] = notANumber{r}
		}
	}
	return s.Ensemble.Follow(ctx, t, into...)
}

// Samplers whose samples are not finite are no tries; without one that is left there is no choice.
func TestFewLeavesOutWhatIsNotFinite(t *testing.T) {
	m, images := smooth(t)
	set := settings(64, "ipndm", "dpmpp2m")
	found := few(t, &spoiled{m, func(t sampler.Trajectories) bool { return t.Start != nil }}, images, set)
	for _, c := range found.Tries {
		if c.Matched {
			t.Errorf("a try from the law: %v", c.Distances)
		}
	}
	for _, where := range []func(t sampler.Trajectories) bool{
		func(sampler.Trajectories) bool { return true },
		func(t sampler.Trajectories) bool { return t.Seed >= firstSeed(set.Seed)+64 }, // the samples held back
	} {
		if _, err := Few(t.Context(), &spoiled{m, where}, images, set); !errors.Is(err, ErrNotFinite) {
			t.Errorf("error %v", err)
		}
	}
}

// searched returns what a search for 3 evaluations finds on a mixture of n normal laws on images of 4×4 pixels, whose
// sampling starts from the law that from makes of the images' own.
func searched(t *testing.T, n int, from func(start.Law) start.Law) *FewResult {
	t.Helper()
	m := ensembletest.Smooth(4, n)
	images, err := MeasureImages(t.Context(), m.Data(t, 400), true, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	law := from(*images.Start.Law(start.Shared))
	if images.Start, err = start.New(images.Start.Settings(), map[int]*start.Law{start.Shared: &law}); err != nil {
		t.Fatal(err)
	}
	return few(t, m, images, settings(128, "dpmpp2m"))
}

// TestScore: the first distance counts as much as the others together, and what is no number is infinite.
func TestScore(t *testing.T) {
	for want, d := range map[float64]Distances{
		4: {4}, 6: {4, 9}, 2: {4, 1, 1}, 10: {25, 16, 1}, math.Inf(1): {1, math.NaN()},
	} {
		if got := d.score(); got != want {
			t.Errorf("%v has score %g, want %g", d, got, want)
		}
	}
	if got := Distances(nil).score(); !math.IsInf(got, 1) {
		t.Errorf("no distances have score %g", got)
	}
}

// TestOtherFiltersJudgeTheChoice: those of the references on held-out samples did not choose.
func TestOtherFiltersJudgeTheChoice(t *testing.T) {
	images, err := MeasureImages(t.Context(), ensembletest.Smooth(4, 3).Data(t, 200), true, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	distances := func(references []*frechet.Reference) []float64 {
		drawn := &sampler.Moments{Parts: frechet.PartsLike(references, 1)}
		noise := make([]float32, 64*4*4)
		for i := range noise {
			noise[i] = float32(i*i%17) / 17
		}
		drawn.Add(0, noise, nil)
		return frechet.Distances(references, frechet.Parts(drawn.Parts).Without(-1))
	}
	chosen, held := distances(images.References), distances(images.Held)
	if len(held) != 3 || !slices.Equal(chosen[:2], held[:2]) || chosen[2] == held[2] {
		t.Errorf("distances by the features that choose are %v, by those held back %v", chosen, held)
	}
}

// TestBiasIsThatOfRandomParts: images that are stored in turn, one of each of two kinds, are not divided by kind.
func TestBiasIsThatOfRandomParts(t *testing.T) {
	all := NewParts(BiasParts, frechet.Given("kinds", 1))
	for range 10 {
		all.Add(0, slices.Repeat([]float32{0, 1}, 200), nil)
	}
	references, err := ReferencesOf(all)
	if err != nil {
		t.Fatal(err)
	}
	one := NewParts(1, frechet.Given("kinds", 1))
	one.Add(0, slices.Repeat([]float32{1}, 100), nil)
	r, s := references[0], one.Parts[0][0]
	if far, excess := r.Distance(s), r.Excess(s); far < 1 || excess < 0.9*far {
		t.Errorf("images of one kind are at %g, less the bias at %g", far, excess)
	}
}

// TestFewTriesNarrowRanges: halved levels stay above the least one that the network knows.
func TestFewTriesNarrowRanges(t *testing.T) {
	m, images := smooth(t)
	for _, ends := range [][2]float64{{0.05, 2}, {0.02, 1}, {0.5, 2}, {0.002, 0.01}} {
		set := settings(64, "dpmpp2m")
		set.G0, set.T = ends[0]*ends[0], ends[1]*ends[1]
		for _, c := range few(t, m, images, set).Tries {
			if c.SigmaMax <= ends[0] {
				t.Errorf("a try from σ = %g on %v", c.SigmaMax, ends)
			}
		}
	}
}

// TestFewTakesAClearGain: on normal data the start from their law is exact, and from noise 3 evaluations are not. The
// gain is that of the distances held back, and the start is kept with the choice.
func TestFewTakesAClearGain(t *testing.T) {
	found := searched(t, 1, func(l start.Law) start.Law { return l })
	if !found.Chosen.Matched || found.Start == nil || found.Against.family() >= found.Chosen.family() {
		t.Fatalf("chosen %+v against %+v", found.Chosen, found.Against)
	}
	ratio := math.Exp(found.Gain.Change)
	if want := found.Chosen.HeldOut.score() / found.Against.HeldOut.score(); !found.Gain.Clear() || ratio > 0.5 ||
		math.Abs(ratio-want) > 0.2*want || !(found.Gain.Stderr > 0) {
		t.Errorf("gain %+v, the distances are as %g to 1", found.Gain, want)
	}
}

// TestFewStartsFromNoise: where starts from the law of the data do harm, the best try is from noise.
func TestFewStartsFromNoise(t *testing.T) {
	found := searched(t, 3, func(l start.Law) start.Law {
		l.Mean = slices.Repeat([]float64{1000}, len(l.Mean))
		return l
	})
	if found.Chosen.Matched || found.Start != nil || found.Against.Matched ||
		found.Chosen.HeldOut == nil || !(found.Chosen.ODEError > 0) {
		t.Errorf("chosen %+v of gain %+v", found.Chosen, found.Gain)
	}
}

// TestFewDoubtsASmallGain: less than a standard error is not clear, a gain that is the same in all parts is.
func TestFewDoubtsASmallGain(t *testing.T) {
	for gain, want := range map[Gain]bool{
		{-0.1, 0.08, nil}: true, {-0.1, 0, nil}: true,
		{-0.1, 0.12, nil}: false, {0.1, 0, nil}: false, {}: false, {math.NaN(), 0.1, nil}: false,
	} {
		if got := gain.Clear(); got != want {
			t.Errorf("%+v is clear: %v", gain, got)
		}
	}
}
