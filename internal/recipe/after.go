package recipe

// After returns for each stage of a recipe the places, from 0, of those that must have ended before it begins. Stages
// that do not wait for each other may be done at once.
func After(stages []Stage) [][]int {
	all := make([][]int, len(stages))
	for i, s := range stages {
		all[i] = []int{}
		for j, before := range stages[:i] {
			if s.follows(before) {
				all[i] = append(all[i], j)
			}
		}
	}
	return all
}

// follows reports whether a stage needs what an earlier one of its recipe makes.
func (s Stage) follows(before Stage) bool {
	switch s.Kind {
	case KindNetwork: // a checkpoint's needs no images
		return before.Kind == KindData && s.Settings != nil
	case KindBasis, KindReference:
		return before.Kind == KindData
	case KindTrain: // of the recipes that it starts from, too
		return !before.Measures()
	case KindFID:
		return before.Kind == KindReference || !before.Measures() && before.Makes == s.Model
	case KindTable:
		return before.Kind == KindFID
	}
	return false
}
