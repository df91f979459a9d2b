package engine

import (
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/internal/testing/alloctest"
	"github.com/anisoflight/anisoflight/train/data"
)

// TestLargeLabelsAreRefused: a label says how much memory is taken for classes, so none is stored beyond 2²⁰. One of
// 2³¹ − 1 once ended the process in MakeModel.
func TestLargeLabelsAreRefused(t *testing.T) {
	e := open(t)
	in := api.Schema{Columns: []api.Column{
		tables.ImageColumn("image", api.Uint8, data.HWC, 1, 1, 1), {Name: "label", Type: api.Int32},
	}}
	upload := func(name string, label int32) error {
		_, err := put(e, `{"op":"PutDataset","name":"`+name+`"}`, in,
			api.Batch{Rows: 1, Cols: []any{[]uint8{1}, []int32{label}}})
		return err
	}
	for _, label := range []int32{1 << 20, 1<<31 - 1} {
		wantCode(t, "label", upload("large", label), api.BadTensor)
	}
	if err := upload("edge", 1<<20-1); err != nil {
		t.Fatal(err)
	}
	// The largest label that is stored costs little wherever classes count.
	for name, request := range map[string][2]string{
		"MakeModel":     {"MakeModel", `{"name":"m","dataset":"edge"}`},
		"MakeModel law": {"MakeModel", `{"name":"m","means":[[0]],"covariances":[[[1]]],"labels":[2147483647]}`},
		"MakeBasis":     {"MakeBasis", `{"name":"b","kind":"pca_per_class","dataset":"edge","k":1}`},
		"MakeSchedule":  {"MakeSchedule", `{"name":"s","kind":"geodesic","model":"tiny","dataset":"edge","per_class":true}`},
		"CreateRun": {"CreateRun", `{"name":"r","stage":"isotropic","dataset":"edge","batch":1,"knots":64,
			"family":{"per_class":true},"network":{"model_type":"SongUNet","embedding_type":"positional",
			"encoder_type":"standard","decoder_type":"standard","img_resolution":1,"img_channels":1,"label_dim":1048576,
			"augment_dim":0,"model_channels":4,"channel_mult":[1],"num_blocks":1,"attn_resolutions":[],"dropout":0}}`},
	} {
		var err error
		took := alloctest.Bytes(func() { _, err = perform(t.Context(), e, request[0], request[1], nil) })
		t.Logf("%s: %d bytes, %v", name, took, err)
		if err == nil || api.ErrorOf(err).Code == api.Internal {
			t.Errorf("%s: %v", name, err)
		}
		if took > 512<<20 {
			t.Errorf("%s takes %d MiB before it refuses", name, took>>20)
		}
	}
	for name, body := range map[string]string{
		"per class": `{"dataset":"edge","schedules":["edm"],"solvers":["heun"],"nfe":[3],"per_class":true}`,
	} {
		var err error
		took := alloctest.Bytes(func() { _, err = prepare(t.Context(), e, "BenchSchedule", body) })
		t.Logf("%s: %d bytes, %v", name, took, err)
		if err == nil || took > 512<<20 {
			t.Errorf("BenchSchedule %s: %d MiB, %v", name, took>>20, err)
		}
	}
}

// TestNetworksAreWeighedBeforeTheyAreMade: a network whose values cannot fit is refused before they are drawn.
func TestNetworksAreWeighedBeforeTheyAreMade(t *testing.T) {
	e := within(t, 256<<20)
	putImages(t, e, "noise", 8)
	var err error
	took := alloctest.Bytes(func() {
		_, err = perform(t.Context(), e, "CreateRun", `{"name":"r","stage":"pretrain","dataset":"noise","batch":8,
			"network":{"model_type":"SongUNet","embedding_type":"positional","encoder_type":"standard",
			"decoder_type":"standard","img_resolution":8,"img_channels":1,"label_dim":1048576,"augment_dim":0,
			"model_channels":128,"channel_mult":[1],"num_blocks":1,"attn_resolutions":[],"dropout":0}}`, nil)
	})
	wantCode(t, "a network of 2 GB", err, api.TooLarge)
	if took > 64<<20 {
		t.Errorf("it took %d MiB to say so", took>>20)
	}
}
