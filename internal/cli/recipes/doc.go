// Package recipes is the command recipe: it prints what a recipe of internal/recipe would do, or does it.
//
// All stages run on one server of the data folder. What is there already is kept, after a check that it is what the
// recipe says. Stages of this program run within the process, on the command line that the caller hands in.
//
// It may import internal/cli/command, internal/cli/connect, internal/recipe and kernels. Begin reading at recipes.go,
// then plan.go and run.go.
package recipes
