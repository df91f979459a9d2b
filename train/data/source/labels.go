package source

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// labelsFile is what StyleGAN and EDM call the list of labels.
const labelsFile = "dataset.json"

// maxLabels bounds the bytes of a dataset.json.
const maxLabels = 1 << 28

// labelled gives the labels of images by their slash-separated names, nil where there are
// none, and the names of the classes. list is the dataset.json; nil where there is none.
func labelled(file string, names []string, list []byte, rule LabelRule) (labels []int32, classes []string, err error) {
	switch {
	case rule == None:
		return nil, nil, nil
	case rule == ByFolder:
		return byFolder(file, names, func(name string) string { return path.Base(path.Dir(name)) })
	case list != nil:
		labels, err = byList(file, names, list)
		return labels, nil, err
	}
	return byFolder(file, names, func(name string) string {
		top, _, nested := strings.Cut(name, "/")
		if !nested {
			return "."
		}
		return top
	})
}

// byFolder numbers the folders of images in the order of their names. One folder is no
// class.
func byFolder(file string, names []string, folder func(name string) string) (labels []int32, classes []string, err error) {
	number := map[string]int32{}
	for _, name := range names {
		number[folder(name)] = 0
	}
	if len(number) < 2 {
		return nil, nil, nil
	}
	for name := range number {
		classes = append(classes, name)
	}
	slices.Sort(classes)
	for i, name := range classes {
		number[name] = int32(i)
	}
	labels = make([]int32, len(names))
	for i, name := range names {
		if folder(name) == "." {
			return nil, nil, failf(file, name, "lies beside folders, which are classes: it has no label (--labels none ignores them all)")
		}
		labels[i] = number[folder(name)]
	}
	return labels, classes, nil
}

// byList reads {"labels": [["00000/img00000000.png", 6], …]}; null is no labels.
func byList(file string, names []string, list []byte) ([]int32, error) {
	var content struct {
		Labels [][2]json.RawMessage `json:"labels"`
	}
	if err := json.Unmarshal(list, &content); err != nil {
		return nil, failf(file, labelsFile, "is not {\"labels\": [[name, label], …]}: %v", err)
	}
	if len(content.Labels) == 0 {
		return nil, nil
	}
	known := make(map[string]int32, len(content.Labels))
	for i, pair := range content.Labels {
		var name string
		if err := json.Unmarshal(pair[0], &name); err != nil {
			return nil, failf(file, labelsFile, "entry %d of labels has the name %s; it is a string", i, pair[0])
		}
		var label int32
		if err := json.Unmarshal(pair[1], &label); err != nil || label < 0 {
			return nil, failf(file, labelsFile, "%s has the label %.40s; labels are whole numbers from 0", name, pair[1])
		}
		if _, twice := known[name]; twice {
			return nil, failf(file, labelsFile, "%s has two labels", name)
		}
		known[name] = label
	}
	labels := make([]int32, len(names))
	for i, name := range names {
		label, ok := known[name]
		if !ok {
			return nil, failf(file, name, "has no label in %s, which has %d for %d images", labelsFile, len(content.Labels), len(names))
		}
		labels[i] = label
		delete(known, name)
	}
	for name := range known {
		return nil, failf(file, labelsFile, "has a label for %q, which is not there", name)
	}
	return labels, nil
}
