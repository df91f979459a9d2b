package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
)

// field is a field of a struct with its words.
type field struct {
	name     string // in Go
	json     string
	typ      string // Go's, without the pointer of a field that may be left out
	help     string
	deflt    string // in words
	required bool
	words    []string // that it may be; nil if that is not known
	group    string   // the embedded struct that it comes from; empty for the struct's own
}

// structType is a struct that travels.
type structType struct {
	doc    string
	fields []field // with those of embedded structs in their place
}

// structTypes are the structs of some packages, by names such as api.Sample.
type structTypes map[string]*structType

// parse reads the structs of packages with fields that have JSON names.
func parse(root string, folders ...string) (structTypes, error) {
	declared := map[string]*ast.TypeSpec{}
	types := structTypes{}
	for _, folder := range folders {
		names, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				return nil, err
			}
			for _, d := range file.Decls {
				group, ok := d.(*ast.GenDecl)
				if !ok || group.Tok != token.TYPE {
					continue
				}
				for _, s := range group.Specs {
					spec := s.(*ast.TypeSpec)
					name := file.Name.Name + "." + spec.Name.Name
					if _, ok := spec.Type.(*ast.StructType); ok {
						declared[name] = spec
						types[name] = &structType{doc: group.Doc.Text()}
					}
				}
			}
		}
	}
	for name, t := range types {
		var err error
		if t.fields, err = fieldsOf(declared, name, ""); err != nil {
			return nil, err
		}
	}
	return types, nil
}

// fieldsOf returns the fields of a struct that have JSON names.
func fieldsOf(declared map[string]*ast.TypeSpec, name, group string) ([]field, error) {
	pkg, _, _ := strings.Cut(name, ".")
	var all []field
	for _, f := range declared[name].Type.(*ast.StructType).Fields.List {
		tag := ""
		if f.Tag != nil {
			tag = reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json")
		}
		json, _, _ := strings.Cut(tag, ",")
		if embedded, ok := f.Type.(*ast.Ident); ok && f.Names == nil && declared[pkg+"."+embedded.Name] != nil {
			inner := group
			if inner == "" {
				inner = embedded.Name
			}
			fields, err := fieldsOf(declared, pkg+"."+embedded.Name, inner)
			if err != nil {
				return nil, err
			}
			all = append(all, fields...)
		}
		if json == "" || json == "-" {
			continue
		}
		words := f.Doc.Text()
		if words == "" {
			words = f.Comment.Text()
		}
		one := field{name: f.Names[0].Name, json: json, typ: typeName(f.Type), group: group}
		one.describe(words)
		all = append(all, one)
	}
	return all, nil
}

// defaults is where the words of a default begin, and required the end of a field that has none.
var (
	defaults = regexp.MustCompile(`(?:^|; |\. )[Dd]efault:? `)
	required = regexp.MustCompile(`(?:^|; )required$`)
)

// describe reads the first paragraph of a comment: what the field is, then `; default WORDS`, or `; required`.
func (f *field) describe(comment string) {
	comment, _, _ = strings.Cut(comment, "\n\n")
	text := strings.TrimSuffix(strings.Join(strings.Fields(comment), " "), ".")
	f.required = required.MatchString(text)
	text = required.ReplaceAllString(text, "")
	if all := defaults.FindAllStringIndex(text, -1); all != nil {
		last := all[len(all)-1]
		text, f.deflt = text[:last[0]], text[last[1]:]
	}
	f.help = text
}

// typeName returns a type as Go writes it, without a pointer.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.ArrayType:
		return "[]" + typeName(e.Elt)
	case *ast.SelectorExpr:
		return typeName(e.X) + "." + e.Sel.Name
	}
	return "any"
}
