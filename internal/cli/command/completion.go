package command

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completionPatience is how long names are looked for; then there are none.
const completionPatience = 2 * time.Second

// completion returns what a shell asks for the values of a setting: the words that it may be, the names that there are
// where the command would work, files, folders, or nothing.
func (s Spec) completion(o Option) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		words := slices.Clone(o.OneOf)
		if o.Names != nil {
			ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
			defer cancel()
			if e, err := s.Prepare(cmd); err == nil {
				e.Log = slog.New(slog.DiscardHandler)
				names, _ := o.Names(ctx, e) // a shell has no place for errors
				words = append(words, names...)
			}
		}
		if o.OneOf == nil && o.Names == nil {
			return nil, o.files(cmd.Flags())
		}
		before := ""
		directive := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		if o.List {
			directive |= cobra.ShellCompDirectiveNoSpace
			before = typed[:strings.LastIndex(typed, ",")+1]
		}
		var fit []cobra.Completion
		for _, w := range words {
			if w = before + w; strings.HasPrefix(w, typed) {
				fit = append(fit, w)
			}
		}
		return fit, directive
	}
}

// files returns whether a shell offers files or folders, which the name of the value in the help says.
func (o Option) files(flags *pflag.FlagSet) cobra.ShellCompDirective {
	switch value, _ := pflag.UnquoteUsage(flags.Lookup(o.Flag())); value {
	case "file", "path":
		return cobra.ShellCompDirectiveDefault
	case "folder":
		return cobra.ShellCompDirectiveFilterDirs
	}
	return cobra.ShellCompDirectiveNoFileComp
}
